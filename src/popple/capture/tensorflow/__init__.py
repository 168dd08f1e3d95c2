"""TensorFlow front end: a traced function, or part of a graph, becomes a Graph.

LowerRequest --lower_program--> LoweredProgram (a Graph, gradients, trips of loops)

Values run in TensorFlow itself; nothing here is needed to run a program.
"""

from popple.capture.tensorflow.lower import (
    LoweredProgram,
    LowerRequest,
    lower_program,
)

__all__ = ["LowerRequest", "LoweredProgram", "lower_program"]
