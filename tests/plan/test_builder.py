"""PlanBuilder: memory from the step that fills it to the one that reads it last."""

from __future__ import annotations

from popple.graph import DType
from popple.plan.builder import PlanBuilder
from popple.plan.opplan import Compute, Loop, Move, PlanRequest, Temporary
from popple.program import TileVector
from tests.plan.machines import bow
from tests.plan.signatures import f32, make

TILES = bow().chip.num_tiles


def builder() -> PlanBuilder:
    signature = make("relu", [f32(64)], [f32(64)])
    return PlanBuilder(PlanRequest(signature, (None,), bow()), "test")


def on_all(num_bytes: int) -> TileVector:
    return TileVector.constant(TILES, num_bytes)


def add_copies(made: PlanBuilder, count: int) -> None:
    for number in range(count):
        made.local_copy(f"copy {number}", on_all(8), DType.F32)


def spans(made: PlanBuilder) -> dict[str, tuple[int, int]]:
    return {t.name: (t.first, t.last) for t in made.temporaries}


def test_memory_lives_from_the_step_that_fills_it_to_its_last_reader() -> None:
    made = builder()
    add_copies(made, 2)
    made.begin("message", on_all(8))
    made.begin_next("sums", on_all(4))
    add_copies(made, 2)
    made.end("message")
    made.end("never begun")
    assert spans(made) == {"message": (1, 3), "sums": (2, 2)}


def test_memory_of_no_bytes_is_none() -> None:
    made = builder()
    made.begin("nothing", on_all(0))
    made.end("nothing")
    assert made.temporaries == ()


def test_what_is_begun_again_takes_the_place_of_what_it_was() -> None:
    made = builder()
    add_copies(made, 1)
    made.begin("rearranged", on_all(8))
    add_copies(made, 1)
    made.begin("rearranged", on_all(12))
    made.end("rearranged")
    assert made.temporaries == (Temporary("rearranged", on_all(12), 1, 1),)


def test_operands_of_units_are_marked() -> None:
    made = builder()
    add_copies(made, 1)
    made.begin("weights", on_all(8))
    made.mark_operand("weights", 2)
    made.mark_operand("never begun", 1)
    assert [t.operand for t in made.temporaries] == [2]


def test_a_loop_holds_the_peak_of_its_body() -> None:
    made = builder()
    add_copies(made, 1)
    body = made.part()
    for number, num_bytes in enumerate((8, 16, 4)):
        add_copies(body, 1)
        body.hold(f"held {number}", on_all(num_bytes), number)
    body.begin("sums", on_all(32), is_interleaved=True)
    made.repeat("buffers", 5, body, interleaved="partials")
    # No two of the three are live at one step: 16 bytes. Sums lie elsewhere.
    assert made.temporaries == (
        Temporary("buffers", on_all(16), 1, 1),
        Temporary("partials", on_all(32), 1, 1, is_interleaved=True),
    )
    assert made.steps[-1] == Loop(5, tuple(body.steps))


def test_a_phase_says_which_inputs_it_reads() -> None:
    made = builder()
    made.move("exchange", on_all(8), on_all(8))
    made.compute("alone", reads=())
    made.compute("all")
    move, alone, everything = made.steps
    assert isinstance(move, Move)
    assert isinstance(alone, Compute)
    assert isinstance(everything, Compute)
    assert (move.reads, alone.reads, everything.reads) == (None, (), None)


def test_a_finished_plan_has_what_was_noted() -> None:
    made = builder()
    made.note("tiles", 3)
    plan = made.finish([], flops=7, is_memory_bound=True, is_interleaved=True)
    assert (plan.rule, plan.choice, plan.flops) == ("test", (("tiles", "3"),), 7)
    assert plan.is_memory_bound
    assert plan.is_interleaved
