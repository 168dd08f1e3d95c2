"""The table of TensorFlow's ops: which ops of the Graph each of them becomes.

One file for each family of the Graph; entries are keyed by TensorFlow's op type.
"""

from popple.capture.tensorflow.ops.table import RULES, find_rule

__all__ = ["RULES", "find_rule"]
