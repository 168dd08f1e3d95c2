"""The local server: what it answers, to whom, and how it starts and stops."""

from __future__ import annotations

import http.client
import json
import queue
import sys
import webbrowser
from collections.abc import Iterator
from typing import Any

import pytest

from popple.errors import UsageError
from popple.viewer import ViewerServer, serve
from popple.viewer.page import load_template
from popple.viewer.serve import is_loopback
from tests.viewer.sample import make_view_data
from tests.viewer.visit import serving

DATA: dict[str, Any] = make_view_data(
    num_chips=1, tiles_per_chip=4, num_operations=3, num_steps=3
)


@pytest.fixture(scope="module")
def server() -> Iterator[ViewerServer]:
    with serving(DATA) as server:
        yield server


def ask(
    server: ViewerServer, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, str, bytes]:
    """Status, content type and body of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    headers = {} if host is None else {"Host": host}
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    answer = response.status, response.headers["Content-Type"], response.read()
    connection.close()
    return answer


@pytest.mark.parametrize("path", ["/", "/?x=1"])
def test_the_page(server: ViewerServer, path: str) -> None:
    status, kind, body = ask(server, path)
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert body.decode() == load_template()


def test_the_data(server: ViewerServer) -> None:
    status, kind, body = ask(server, "/data.json")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == DATA


def test_head_has_no_body(server: ViewerServer) -> None:
    assert ask(server, "/", "HEAD")[::2] == (200, b"")


@pytest.mark.parametrize("path", ["/other", "/../secret", "/data.json/x"])
def test_there_is_nothing_else(server: ViewerServer, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000"])
def test_own_host_names_are_answered(server: ViewerServer, host: str) -> None:
    assert ask(server, "/data.json", host=host)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", ""])
def test_foreign_host_names_are_refused(server: ViewerServer, host: str) -> None:
    assert ask(server, "/data.json", host=host)[0] == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::"])
def test_only_loopback_is_served(host: str) -> None:
    with pytest.raises(UsageError, match=r"Use 127\.0\.0\.1"):
        ViewerServer(DATA, host)


def test_what_is_loopback() -> None:
    names = ("localhost", "127.0.0.1", "127.8.8.8", "::1", "10.0.0.1", "local")
    assert [is_loopback(name) for name in names] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("port", [None, 70_000])
def test_a_port_that_cannot_be_used(server: ViewerServer, port: int | None) -> None:
    with pytest.raises(UsageError, match="another port"):
        ViewerServer(DATA, port=port or server.server_port)


@pytest.mark.parametrize("open_browser", [True, False])
def test_serving_says_where_and_stops_on_ctrl_c(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    open_browser: bool,
) -> None:
    opened: queue.Queue[str] = queue.Queue()

    def interrupt(_server: ViewerServer) -> None:
        address = opened.get(timeout=60) if open_browser else ""
        raise KeyboardInterrupt(address)

    # The function of this name hides the module as an attribute of its package.
    module = sys.modules["popple.viewer.serve"]
    monkeypatch.setattr(module, "load_view_data", lambda _path: DATA)
    monkeypatch.setattr(ViewerServer, "serve_forever", interrupt)
    monkeypatch.setattr(webbrowser, "open", opened.put)
    serve("report", open_browser=open_browser)
    assert "http://127.0.0.1:" in capsys.readouterr().out
    assert opened.empty()
