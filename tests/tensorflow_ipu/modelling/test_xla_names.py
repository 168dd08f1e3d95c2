"""Names of compute sets, in the words of XLA and PopLibs."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

from tensorflow.python.ipu._modelling.xla_names import instruction_of, name_compute_sets

from popple.graph import parse_graph

PLACE = "chip=0 stage=0"
WINDOW = '{"dilation": [1, 1], "groups": 1, "padding": [1, 1], "stride": [2, 2]}'
GRAPH = f"""
graph "net" {{
  input %x : f32[2,4,8,8]
  weight %k : f32[4,4,3,3]
  weight %b : f32[4,1,1]
  conv %c.conv : %c : f32[2,4,4,4] = (%x, %k) {WINDOW} forward {PLACE}
  add %a : %a : f32[2,4,4,4] = (%c, %b) forward {PLACE}
  relu %n/r : %r : f32[2,4,4,4] = (%a) forward {PLACE}
  relu %s : %s : f32[2,4,4,4] = (%r) forward {PLACE}
  add %t : %t : f32[2,4,4,4] = (%r, %s) forward {PLACE}
  max_pool %p : %p : f32[2,4,2,2] = (%t) {{"kernel": [2, 2]}} forward {PLACE}
  conv_weight_grad %d : %d : f32[4,4,3,3] = (%t, %x) {WINDOW} backward {PLACE}
  output %p
}}
"""


@pytest.mark.parametrize(
    ("ours", "known"),
    [
        ("c.conv/partials", "c/convolution/Conv_3x3_stride2x2/Convolve"),
        ("c.conv/order inputs", "c/convolution/Conv_3x3_stride2x2/order inputs"),
        # A bias is added by what XLA calls a fusion, whatever else by an instruction
        # with its number. Instructions that take another's place begin to count anew.
        ("a/add", "a/fusion/Op/Add"),
        ("t/add", "t/add.4/Op/Add"),
        ("n/r/relu", "n/r/relu/Nonlinearity"),
        ("s/relu", "s/relu.1/Nonlinearity"),
        ("p/max_pool", "p/max-pool/maxPool2x2"),
        # The gradient of a kernel convolves with that of the output.
        ("d/partials", "d/convolution.1/Conv_4x4/Convolve"),
        ("copy of x/chip_copy", "copy of x/chip_copy"),
    ],
)
def test_compute_sets_have_names_that_users_know(ours: str, known: str) -> None:
    assert name_compute_sets(parse_graph(GRAPH))(ours) == known


def test_ops_are_instructions() -> None:
    ops = parse_graph(GRAPH).ops
    names = [instruction_of(op) for op in ops]
    assert names[:3] == ["convolution", "add", "relu"]
    assert names[-2:] == ["max-pool", "convolution"]
