"""Numbers as the device computes them, where TensorFlow's CPU kernels differ.

In: operations that a program makes. Out: operations that the CPU has, with the values
that the device would give: half precision, batch norms, layouts, labels.
"""
