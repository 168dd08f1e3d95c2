"""The table that the processes of a job share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from popple.distributed import Instance, StoreClient, connect_store
from popple.distributed.store import StoreServer
from popple.errors import UsageError

Connect = Callable[..., StoreClient]


@pytest.fixture
def server() -> Iterator[StoreServer]:
    server = StoreServer()
    yield server
    server.close()


@pytest.fixture
def connect(server: StoreServer) -> Iterator[Connect]:
    with ExitStack() as stack:

        def client(key: str = "") -> StoreClient:
            address = f"{server.host}:{server.port}"
            return stack.enter_context(closing(StoreClient(address, key or server.key)))

        yield client


def test_what_one_writes_all_read(connect: Connect) -> None:
    connect().put("address", "here:1")
    assert connect().get("address", 60) == "here:1"


def test_reading_waits_for_the_writer(connect: Connect) -> None:
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(connect().get("late", 60)))
    reader.start()
    connect().put("late", "now")
    reader.join()
    assert found == ["now"]


def test_counting(connect: Connect) -> None:
    assert [connect().add("here") for _ in range(3)] == [1, 2, 3]


def test_nobody_comes(connect: Connect) -> None:
    with pytest.raises(UsageError, match="No other instance has come to 'never'"):
        connect().get("never", 0.01)


def test_strangers_get_no_answer(connect: Connect) -> None:
    with pytest.raises(UsageError, match="another key"):
        connect("guess").put("a", "b")


def test_a_launcher_that_is_gone(server: StoreServer, connect: Connect) -> None:
    held = connect()
    held.put("a", "b")
    server.close()
    with pytest.raises(UsageError, match="cannot be reached"):
        connect()


def test_without_launcher_there_is_no_store() -> None:
    with pytest.raises(UsageError, match="Start the program with poprun"):
        connect_store(Instance())
