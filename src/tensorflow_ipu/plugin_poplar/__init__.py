"""`tensorflow.compiler.plugin.poplar`: messages and raw operators of the IPU back end.

Programs reach in here for protobuf messages (`driver.*_pb2`), for the raw operators
that lie under `tensorflow.python.ipu` (`ops.gen_*`) and for `tools`.
"""
