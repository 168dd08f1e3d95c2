"""How true the model is: published figures beside modelled ones.

rows        what was published, what is modelled, and the errors of many rows
params      the command lines of the benchmark tools as values
model_case  a torch module on a chip: cycles of its ops, memory of its tiles
            and one module for each set of rows; `SETS` in `benchmarks/fidelity.py`
"""
