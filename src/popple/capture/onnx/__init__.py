"""ONNX models: a Graph as a model in the exchange format, and as a file.

Graph, Nodes --make_model--> onnx.ModelProto --write_model--> file

Importing this needs the onnx package (`pip install 'popple[onnx]'`).
"""

from popple.capture.onnx.model import DOMAIN, Node, make_model
from popple.capture.onnx.types import element_type, make_value_info
from popple.capture.onnx.write import write_model

__all__ = [
    "DOMAIN",
    "Node",
    "element_type",
    "make_model",
    "make_value_info",
    "write_model",
]
