"""A table of texts that the processes of a job share: the launcher serves it.

Processes use it to find each other and to wait for each other, before any framework's
own communication is set up and whichever framework that is. Keys are written once and
read by anyone, who waits until they are there.

    put(key, text)      write
    get(key)            wait until the key is there, read it
    add(key)            one more; how many there are now

Messages are one JSON list per line. Who does not know the job's key is not answered.
"""

from __future__ import annotations

import functools
import hmac
import json
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Any, cast

from popple.distributed.instance import Instance
from popple.errors import UsageError

_LOCAL = "127.0.0.1"
_LONGEST_LINE = 1 << 20
SECONDS_TO_CONNECT = 30.0


class _Table:
    """Texts by key, with waiting for keys that are not there yet."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._texts: dict[str, str] = {}
        self._is_open = True

    def put(self, key: str, text: str) -> str:
        with self._changed:
            self._texts[key] = text
            self._changed.notify_all()
        return text

    def add(self, key: str) -> str:
        with self._changed:
            return self.put(key, str(int(self._texts.get(key, "0")) + 1))

    def get(self, key: str, seconds: str) -> str | None:
        """The text; None if it has not come in this time."""
        with self._changed:
            self._changed.wait_for(
                lambda: key in self._texts or not self._is_open, float(seconds)
            )
            return self._texts.get(key)

    def close(self) -> None:
        with self._changed:
            self._is_open = False
            self._changed.notify_all()


class _Connection(socketserver.StreamRequestHandler):
    """Answers one process."""

    def handle(self) -> None:
        server = cast(_Server, self.server)
        key = self.rfile.readline(_LONGEST_LINE).strip()
        if not hmac.compare_digest(key, server.key.encode()):
            return
        while line := self.rfile.readline(_LONGEST_LINE):
            try:
                name, *texts = json.loads(line)
                answer = server.calls[name](*texts)
            except (ValueError, TypeError, KeyError):
                return
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    # A process that waits for a key must not hold up the launcher's end.
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, host: str, table: _Table) -> None:
        super().__init__((host, 0), _Connection)
        self.key = secrets.token_hex(16)
        self.calls: dict[str, Callable[..., str | None]] = {
            "put": table.put,
            "get": table.get,
            "add": table.add,
        }


class StoreServer:
    """The launcher's side: serves the table until it is closed.

    It listens on this computer alone unless it is given an address that other hosts
    see.
    """

    def __init__(self, host: str = _LOCAL) -> None:
        self._table = _Table()
        self._server = _Server(_LOCAL if host == _LOCAL else "", self._table)
        self.key = self._server.key
        self.port: int = self._server.server_address[1]
        self.host = host
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()

    def close(self) -> None:
        """End all waiting."""
        self._table.close()
        self._server.shutdown()
        self._server.server_close()


class StoreClient:
    """A process's side of the store; calls of several threads take turns."""

    def __init__(self, address: str, key: str) -> None:
        host, _, port = address.rpartition(":")
        try:
            self._socket = socket.create_connection(
                (host, int(port)), SECONDS_TO_CONNECT
            )
        except (OSError, ValueError) as error:
            raise UsageError(
                f"The launcher of this job cannot be reached at {address!r}: {error}.",
                remedy="Start the program with poprun, and let it live as long as the "
                "instances.",
            ) from error
        self._socket.settimeout(None)
        self._lines = self._socket.makefile("rwb")
        self._turn = threading.Lock()
        self._lines.write(key.encode() + b"\n")

    def put(self, key: str, text: str) -> None:
        """Write a text for all."""
        self._ask("put", key, text)

    def add(self, key: str) -> int:
        """Count one more under this key; how many there are now."""
        return int(self._ask("add", key))

    def get(self, key: str, seconds: float) -> str:
        """Wait until someone has written the text; UsageError if nobody does."""
        text = self._ask("get", key, str(seconds))
        if text is None:
            raise UsageError(
                f"No other instance has come to {key!r} within {seconds:g} s.",
                remedy="All instances must get there: look what the others wait for.",
            )
        return text

    @property
    def own_host(self) -> str:
        """The address under which the others see this computer."""
        return self._socket.getsockname()[0]

    def close(self) -> None:
        """End the connection."""
        self._lines.close()
        self._socket.close()

    def _ask(self, *call: str) -> Any:
        with self._turn:
            self._lines.write(json.dumps(call).encode() + b"\n")
            self._lines.flush()
            line = self._lines.readline()
        if not line:
            raise UsageError(
                "The launcher of this job is gone, or has another key.",
                remedy="Start the job again with poprun.",
            )
        return json.loads(line)


@functools.cache
def connect_store(instance: Instance) -> StoreClient:
    """This process's connection to the store of its job, made once."""
    if not instance.store:
        raise UsageError(
            "This process knows no launcher, so it cannot find the other instances.",
            remedy="Start the program with poprun.",
        )
    return StoreClient(instance.store, instance.store_key)
