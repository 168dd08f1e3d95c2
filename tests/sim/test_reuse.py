from __future__ import annotations

import pytest

from popple.program import (
    Exchange,
    Repeat,
    Sequence,
    Step,
    TileVector,
    Variable,
    add_all,
)
from popple.sim.footprint import added_exchange_code
from popple.sim.liveness import find_liveness
from popple.sim.reuse import exchange_instructions
from tests.sim.machines import one_chip, tiles, use

SEND, RECEIVE = 2, 3  # instructions of a tile that sends a word, and that receives one


def added(main: Step, *variables: Variable) -> TileVector:
    """Instructions of exchanges on every tile."""
    program = one_chip(main, *variables)
    steps = program.steps
    lives = find_liveness(program, steps).intervals
    return add_all(added_exchange_code(program, steps, lives).values(), 4)


def send(name: str) -> Exchange:
    """A word of a variable from the first tile to the second."""
    return Exchange(name, tiles(4, 0, 0, 0), tiles(0, 4, 0, 0), reads=(name,))


def variables(*names: str, is_always_live: bool = False) -> list[Variable]:
    place = tiles(4, 0, 0, 0)
    return [Variable(n, place, is_always_live=is_always_live) for n in names]


@pytest.mark.parametrize(
    ("sent", "received", "messages", "instructions"),
    [
        (0, 0, 0, 0),
        (0, 4, 1, 3),  # 12 B; 12 to 16 B in a genuine profile
        (4, 0, 0, 2),  # 8 B; 4 to 8 B
        (4, 128, 32, 66),  # 264 B; 268 to 272 B
        (1024, 0, 0, 5),  # 256 words are four sends of 64
    ],
)
def test_exchange_code_grows_with_messages(
    sent: int, received: int, messages: int, instructions: int
) -> None:
    step = Exchange("e", tiles(sent), tiles(received), tiles(messages))
    assert exchange_instructions(step) == tiles(instructions)


def test_equal_exchanges_share_their_code() -> None:
    move = Exchange("e", tiles(4, 0, 0, 0), tiles(0, 4, 0, 0))
    other = Exchange("f", tiles(4, 0, 0, 0), tiles(0, 0, 4, 0))
    found = added(Sequence((move, Repeat(9, move), other)))
    assert found == tiles(2 * SEND, RECEIVE, RECEIVE, 0)


def test_tiles_that_send_a_weight_have_code_for_each_weight() -> None:
    moves = Sequence((send("v"), send("w"), send("v")))
    found = added(moves, *variables("v", "w", is_always_live=True))
    assert found == tiles(2 * SEND, RECEIVE, 0, 0)


def test_variables_that_follow_each_other_have_one_address() -> None:
    make = {name: use(writes=(name,)) for name in "ab"}
    steps = (make["a"], send("a"), make["b"], send("b"))
    assert added(Sequence(steps), *variables("a", "b")) == tiles(SEND, RECEIVE, 0, 0)


def test_activations_that_wait_together_have_addresses_of_their_own() -> None:
    make = {name: use(writes=(name,)) for name in "ab"}
    wait = (use(reads=("b",)), use(reads=("a",)))
    steps = (make["a"], send("a"), make["b"], send("b"), *wait)
    found = added(Sequence(steps), *variables("a", "b"))
    assert found == tiles(2 * SEND, RECEIVE, 0, 0)
