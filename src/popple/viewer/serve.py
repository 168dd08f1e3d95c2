"""Serves the viewer on this machine, and only to this machine.

In: the data of a report. Out: `/` (the page) and `/data.json`, on a loopback address.
Requests under a foreign host name are refused, so no web page can read a report by
pointing its own name at 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import webbrowser
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseServer, TCPServer
from typing import Any, TypeAlias

from popple.errors import UsageError
from popple.viewer.page import encode_json, load_template, load_view_data

# What is answered, by path: content type and body.
_Contents: TypeAlias = Mapping[str, tuple[str, bytes]]


def is_loopback(host: str) -> bool:
    """Whether a host name or address stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(header: str) -> str:
    """The host of a Host header: `[::1]:80` -> `::1`, `localhost:80` -> `localhost`."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


class _Handler(BaseHTTPRequestHandler):
    def __init__(
        self, contents: _Contents, request: Any, address: Any, server: BaseServer
    ) -> None:
        # The base class answers the request inside its constructor.
        self._contents = contents
        super().__init__(request, address, server)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        status, kind, body = self._find_answer()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _find_answer(self) -> tuple[HTTPStatus, str, bytes]:
        text = "text/plain; charset=utf-8"
        if not is_loopback(_host_of(self.headers.get("Host", ""))):
            return HTTPStatus.FORBIDDEN, text, b"Only for this machine.\n"
        found = self._contents.get(self.path.partition("?")[0])
        if found is None:
            return HTTPStatus.NOT_FOUND, text, b"There are / and /data.json.\n"
        return HTTPStatus.OK, *found

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal belongs to the user's program."""


class ViewerServer(ThreadingHTTPServer):
    """A local web server for one report; `url` says where, `with` closes it.

    It listens once constructed and answers while `serve_forever` runs.
    """

    def __init__(
        self, data: Mapping[str, Any], host: str = "127.0.0.1", port: int = 0
    ) -> None:
        if not is_loopback(host):
            raise UsageError(
                f"the viewer is not served on {host!r}, which others can reach.",
                remedy="Use 127.0.0.1, or write a file with `popple view --html`.",
            )
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        contents = {
            "/": ("text/html; charset=utf-8", load_template().encode()),
            "/data.json": ("application/json", encode_json(data).encode()),
        }
        try:
            super().__init__((host, port), partial(_Handler, contents))
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"port {port} of {host} cannot be used: {error}.",
                remedy="Use another port, or 0 for any free one.",
            ) from error

    def server_bind(self) -> None:
        # HTTPServer would look up the host's full name here, over the network.
        TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), port

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"http://{host}:{self.server_port}/"


def serve(
    report_path: str | Path,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
) -> None:
    """Serve the report until Ctrl-C; print the address, open it in the browser."""
    with ViewerServer(load_view_data(report_path), host, port) as server:
        print(f"The report is at {server.url} (Ctrl-C stops).", flush=True)
        if open_browser:
            # A text browser holds the call until it is left, so it waits elsewhere.
            threading.Thread(
                target=webbrowser.open, args=(server.url,), daemon=True
            ).start()
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
