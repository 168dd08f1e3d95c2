"""What is counted of the programs that stand for benchmarks and models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.calibration import roformer
from benchmarks.calibration.bert import Bert, Form, Layer, Shape, Stage, with_dtype
from benchmarks.calibration.clip import Clip
from benchmarks.calibration.compiler import TOOLS, start_cycles
from benchmarks.calibration.configurations import PUBLIC, read_settings
from benchmarks.calibration.footprints import layer_sizes
from benchmarks.calibration.kernels import kernel_rows
from benchmarks.calibration.model_case import Case, ModelledCase, Once, model_case
from benchmarks.calibration.models import SquadBert, model_rows
from benchmarks.calibration.packing import sequences_by_row
from benchmarks.calibration.params import Params
from benchmarks.calibration.popliner import Profiled, ops_by_layer
from benchmarks.calibration.pretraining import (
    pipeline_of,
    pretraining_module,
    seconds_between_runs,
    sequences_between_evaluations,
    training_share,
)
from benchmarks.calibration.published import Published, published_rows
from benchmarks.calibration.roformer import RoFormer
from benchmarks.calibration.rows import NotExpressed
from benchmarks.calibration.runs import Run, model_run
from benchmarks.calibration.swin import SwinTiny
from benchmarks.calibration.vertices import vertex_cycles

DATA = Path(__file__).parent / "data"


def modelled(tool: str, text: str, chip: str = "gc200") -> tuple[Case, ModelledCase]:
    case = TOOLS[tool](Params(text))
    return case, model_case(case, chip)


def kinds(tool: str, text: str) -> list[str]:
    return [op.kind for op in modelled(tool, text)[1].modelled.graph.ops]


def test_a_layer_runs_three_products_and_an_update() -> None:
    _, found = modelled(
        "fc", "--input-size 64 --output-size 32 --batch-size 16 --bias 0"
    )
    costs = found.modelled.simulation.cost_by_op
    ops = found.modelled.graph.ops
    counted = [op for op in ops if op.kind == "matmul" or op.name == "weights.update"]
    assert len(counted) == 4
    assert found.cycles == sum(costs[op.name].cycles for op in counted)


def test_a_convolution_has_both_gradients() -> None:
    text = "--field {8,8} --kernel-size 3 --padding 1 --input-channels 16"
    found = kinds("conv", f"{text} --output-channels 16 --bias 0")
    assert {"conv", "conv_input_grad", "conv_weight_grad"} <= set(found)


def test_a_product_is_added_in_place() -> None:
    assert kinds("gemm", "--m 8 --k 16 --n 32")[:2] == ["matmul", "add"]


@pytest.mark.parametrize(
    ("tool", "text", "num_syncs"),
    [
        ("fc", "--input-size 16 --output-size 16 --bias 0", 2),
        ("reduction", "--shape=8,64 --dims=0 --type=half", 1),
        ("gemm", "--m 8 --k 16 --n 32", 0),
    ],
)
def test_a_program_without_code_begins_with_a_sync(
    tool: str, text: str, num_syncs: int
) -> None:
    # A layer runs forward and backward as two programs; products compile code.
    case, found = modelled(tool, text)
    assert start_cycles(tool, case, found) == num_syncs * 600


def test_a_sum_of_squares_takes_no_root() -> None:
    text = "--shape=8,64 --dims=0 --type=half --operation="
    squares = modelled("reduction", f"{text}SQUARE_ADD")[1].cycles
    # Squares are taken on the way, at no cost.
    assert squares == modelled("reduction", f"{text}ADD")[1].cycles


def test_padding_on_one_side() -> None:
    text = "--field {8,8} --kernel-size 3 --padding-lower 1 --stride 2 --bias 0"
    case = TOOLS["conv"](Params(f"{text} --input-channels 4 --output-channels 4"))
    # (8 + 1 - 3) // 2 + 1 = 4 positions.
    assert case.module.get_buffer("gradient").shape[-2:] == (4, 4)


def test_fewer_tiles_take_more_cycles() -> None:
    text = "--shape=64,1024 --dims=0 --type=half --operation=ADD"
    all_tiles, few = (
        modelled("reduction", text),
        modelled("reduction", f"{text} --tiles-per-ipu=16"),
    )
    assert few[1].cycles > all_tiles[1].cycles


def test_an_octave_without_low_inputs_has_two_convolutions() -> None:
    text = "--field {8,8} --input-channels 4 --output-channels 8"
    found = kinds("oct_conv", f"{text} --alpha-in 0 --alpha-out 0.25")
    assert found.count("conv") == 2


def test_updates_of_an_octave_run_side_by_side() -> None:
    text = "--field {8,8} --input-channels 32 --output-channels 32 --alpha 0.5"
    case, found = modelled("oct_conv", text)
    again = replace(TOOLS["oct_conv"](Params(text)), side_by_side=False)
    in_turn = model_case(again, "gc200")
    costs = found.modelled.simulation.cost_by_op
    updates = [costs[f"{name}.update"].cycles for name in case.updated]
    assert len(updates) == 4
    assert in_turn.cycles - found.cycles == sum(updates) - max(updates)


def test_an_op_without_a_rule_is_refused() -> None:
    case = Case(Once(torch.linalg.inv, {"a": torch.eye(4)}))
    with pytest.raises(NotExpressed, match="no rule plans"):
        model_case(case, "gc200")


def test_a_bias_is_refused() -> None:
    with pytest.raises(NotExpressed, match="bias"):
        modelled("fc", "--input-size 64 --output-size 32")


def test_more_elements_take_the_vertex_longer() -> None:
    # Four cycles for each element, six workers side by side.
    assert vertex_cycles(256) - vertex_cycles(128) == pytest.approx(512, rel=0.05)


def test_equal_layers_have_equal_footprints() -> None:
    ids = torch.zeros(1, 16, dtype=torch.int32)
    bert = with_dtype(Bert(Shape(3, 64, 2, 16, 100), Form()), torch.float16)
    modelled = model_run(Run(bert, (ids, ids, ids.float())), "gc200")
    found = layer_sizes(Profiled(modelled, ops_by_layer(modelled)))
    assert list(found) == [0, 1, 2]
    assert found[1]["vertex_code_B"] == found[2]["vertex_code_B"] > 0
    # Twelve matrices of 64 x 64 half numbers, and more for the states.
    assert found[1]["variables_B"] > 12 * 64 * 64 * 2


def test_every_published_row_is_in_a_set() -> None:
    kinds_found = {each.kind for each in published_rows(DATA)}
    assert kinds_found == {"kernels", "models", "memory", "other"}
    assert len(list(kernel_rows(DATA))) > 50
    assert len(list(model_rows(DATA))) > 50


def test_code_that_a_tool_never_compiles_has_no_memory() -> None:
    text = "--input-size 8 --output-size 8 --bias 0"
    _, whole = modelled("fc", text)
    bare = model_case(TOOLS["fc"](Params(text)), "gc200", counts_code=False)
    held = whole.modelled.simulation.memory.by_category
    uncounted = (
        "controlCode vertexCode internalExchangeCode hostExchangeCode "
        "globalExchangeCode stack"
    )
    code = [v.total for c, v in held.items() if c.value in uncounted.split()]
    assert whole.total_bytes - bare.total_bytes == sum(code) > 0


def published(name: str) -> Published:
    return next(row for row in published_rows(DATA) if row.name == name)


def test_what_a_row_leaves_out_is_in_a_public_configuration() -> None:
    pipeline = pipeline_of(published("gcperf_bertlarge_ph2_sl512_packed_64_popart"))
    settings = pipeline.settings
    assert settings.stages == tuple(
        Stage(chip, n, n) for chip, n in enumerate((3, 7, 7, 7))
    )
    # 9600 packs for 16 replicas that take 2 at a time.
    assert (pipeline.num_replicas, pipeline.accumulation) == (16, 300)
    assert settings.proportions == (0.16, 0.21, 0.21, 0.21)
    assert settings.has_states_off_chip
    assert settings.has_shared_updates


def test_halves_of_layers_lie_on_chips() -> None:
    pipeline = pipeline_of(published("mlperf_v1.1_bert_pod64_tput"))
    settings = pipeline.settings
    assert settings.num_chips == 8
    # Nothing but embeddings first; the last three halves are with the heads.
    assert settings.stages[0] == Stage(0, 0, 0)
    assert settings.stages[-1] == Stage(0, 1, 2)
    assert sum(stage.num_halves for stage in settings.stages) == 2 * 24
    assert settings.proportions == (0.2, *[0.25] * 7)
    assert not settings.has_states_off_chip


@pytest.mark.parametrize("name", PUBLIC)
def test_public_configurations_are_complete(name: str) -> None:
    settings = read_settings(PUBLIC[name])
    halves = sum(stage.num_halves for stage in settings.stages)
    assert halves in (2 * 12, 2 * 24)
    assert len(settings.proportions) == settings.num_chips


def test_rows_hold_sequences_as_they_fit() -> None:
    # Lengths around half a row: nearly two fit, never fewer than one.
    assert 1.8 < sequences_by_row(384) < 2.0


def test_modules_take_what_the_rows_feed_them() -> None:
    images = torch.zeros(1, 3, 224, 224)
    assert SwinTiny()(images).shape == (1, 1000)
    ids = torch.zeros(2, 77, dtype=torch.int32)
    by_image, by_text = Clip()(images, ids)
    assert (by_image.shape, by_text.shape) == ((1, 2), (2, 1))
    for form in (roformer.Form(), roformer.Form(True, True)):
        assert RoFormer(77, form)(ids, ids, ids.float()).shape == (2, 2)


def test_early_rounds_of_mlperf_validate_by_steps_of_training() -> None:
    # 5 % of 230.23 x 3,072 + 3,000,000 sequences is 185,363: 175,000 in whole 25,000.
    # That is 56.97 steps; 10,000 sequences are validated in four more.
    assert sequences_between_evaluations(3_072) == 175_000
    row = Published("mlperf_v1.1_bert_pod16_tput", "", 16, "", "", "", "", "")
    assert training_share(row, 3_072) == pytest.approx(56.966 / 60.966, abs=1e-4)
    later = replace(row, name="mlperf_v2.0_bert_pod128_tput")
    assert training_share(later, 6_144) == 1.0


@pytest.mark.parametrize(
    ("name", "config", "seconds"),
    [
        ("gcperf_bert_popart", "PopART, SDK 3.1, GBS 9600", 0.17),
        ("mlperf_v2.0_paddle_bert_pod16", "as PopART config", 0.17),
        ("gcperf_bert_pytorch", "PyTorch, PopART analogue", 0.0),
    ],
)
def test_time_between_runs_is_known_of_popart_alone(
    name: str, config: str, seconds: float
) -> None:
    row = Published(name, "", 16, "BERT-Large", config, "", "", "")
    assert seconds_between_runs(row) == seconds


def test_a_loop_that_waits_costs_its_call_and_its_lists() -> None:
    shape, form = Shape(12, 768, 12, 256), Form()
    ahead = SquadBert(shape, form, 2, torch.float16)
    # 126 us for a call with two sequences, 30 us for each.
    waiting = replace(ahead, has_host_loop=True)
    assert (ahead.host_seconds, waiting.host_seconds) == (0, pytest.approx(93e-6))


def test_programs_that_train_multiply_scores() -> None:
    settings = read_settings(PUBLIC["PopART Base 128"])
    layer = pretraining_module(Shape(12, 16, 2, 8, 32), settings).bert.layers[0]
    assert isinstance(layer, Layer)
    assert not layer.attention.form.has_divided_scores


def test_scores_are_the_same_however_they_are_scaled() -> None:
    x, shape = torch.randn(1, 8, 16), Shape(1, 16, 2, 8, 32)
    forms = (
        Form(),
        Form(has_divided_scores=False),
        Form(has_scaled_queries=True),
    )
    found: list[torch.Tensor] = []
    for form in forms:
        torch.manual_seed(0)
        layer = Layer(shape, form)
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter)
        found.append(layer(x, None).detach())
    assert torch.allclose(found[0], found[1], atol=1e-5)
    assert torch.allclose(found[0], found[2], atol=1e-5)


def test_queries_are_turned_alike_by_pairs_and_by_a_product() -> None:
    x, angles = torch.randn(3, 4), torch.randn(3, 2)
    pairs = roformer.turned_pairs(x, angles.cos(), angles.sin())
    # Of each pair of elements the second comes first, with another sign.
    places = torch.zeros(4, 4)
    places[0, 1], places[1, 0], places[2, 3], places[3, 2] = 1, -1, 1, -1
    twice = angles.repeat_interleave(2, -1)
    product = roformer.turned_by_product(x, twice.cos(), twice.sin(), places)
    assert torch.allclose(pairs, product, atol=1e-6)
