"""Small graphs, written by hand, that lowering tests share."""

from __future__ import annotations

import re

from popple.graph import Graph, parse_graph

# `forward 1/2` is short for forward chip=1 stage=2.
LINEAR_LAYER = """graph "linear" accumulation=4 device_iterations=3 {
  input %x : f16[64,96]
  weight %w : f16[128,96]
  weight %b : f16[128]
  permute %wt : %wt : f16[96,128] shares %w = (%w) {"order": [1, 0]} forward 0/0
  matmul %y : %y : f16[64,128] = (%x, %wt) forward 0/0
  add %z : %z : f16[64,128] = (%y, %b) forward 0/0
  reduce_sum %bg : %bg : f16[128] = (%z) {"dims": [0]} backward 0/0
  sgd_update %u : %bu : f16[128] shares %b = (%b, %bg) update 0/0
  output %z
}
"""

SHARDED = """graph "sharded" strategy=sharded num_chips=2 {
  input %x : f32[64,96]
  constant %c : f32[96]
  add %a : %a : f32[64,96] = (%x, %c) forward 0/0
  chip_copy %t : %t : f32[64,96] = (%a) {"source": 0} forward 1/0
  add %d : %d : f32[64,96] = (%t, %c) forward 1/0
  output %d
}
"""

# Two forward stages on two chips; the last one also does its own backward work.
PIPELINE = """graph "pipe" strategy=pipelined num_chips=2 num_stages=3 accumulation=5 {
  input %x : f32[64,96]
  weight %w0 : f32[64,96]
  weight %w1 : f32[64,96]
  state %ring : f32[3,64,96]
  add %f0 : %f0 : f32[64,96] = (%x, %w0) forward 0/0
  stash %s0 : %s0 : f32[3,64,96] shares %ring = (%ring, %f0) forward 0/0
  chip_copy %c0 : %c0 : f32[64,96] = (%f0) {"source": 0} forward 1/0
  mul %f1 : %f1 : f32[64,96] = (%c0, %w1) forward 1/1
  mul %g1 : %g1 : f32[64,96] = (%f1, %c0) backward 1/1
  chip_copy %c1 : %c1 : f32[64,96] = (%g1) {"source": 1} backward 0/1
  restore %r0 : %r0 : f32[64,96] = (%s0) backward 0/2
  mul %g0 : %g0 : f32[64,96] = (%c1, %r0) backward 0/2
  all_reduce %ar0 : %ar0 : f32[64,96] shares %g0 = (%g0) {"replicas": 2} update 0/0
  sgd_update %u0 : %w0u : f32[64,96] shares %w0 = (%w0, %ar0) update 0/0
  all_reduce %ar1 : %ar1 : f32[64,96] shares %g1 = (%g1) {"replicas": 2} update 1/0
  sgd_update %u1 : %w1u : f32[64,96] shares %w1 = (%w1, %ar1) update 1/0
  output %f1
}
"""


def parse(text: str) -> Graph:
    """A graph from its text form with places written short."""
    return parse_graph(re.sub(r" (\d)/(\d)\n", r" chip=\1 stage=\2\n", text))


def linear_layer() -> Graph:
    """One layer with a bias update on one chip, four micro-batches, three rounds."""
    return parse(LINEAR_LAYER)


def sharded() -> Graph:
    """Two additions on two chips."""
    return parse(SHARDED)


def pipeline(accumulation: int = 5) -> Graph:
    """A training pipeline of three stages on two chips."""
    text = PIPELINE.replace("accumulation=5", f"accumulation={accumulation}")
    return parse(text)


def inference_pipeline(device_iterations: int) -> Graph:
    """Two stages on two chips, without training."""
    text = SHARDED.replace(
        "strategy=sharded num_chips=2",
        "strategy=pipelined num_chips=2 num_stages=2 "
        f"device_iterations={device_iterations}",
    ).replace("1/0\n  output", "1/1\n  output")
    return parse(text)
