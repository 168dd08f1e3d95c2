"""A page that remembers complaints, and a server that runs during a block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

from popple.viewer import ViewerServer


@dataclass
class Visit:
    """An open page, what it complained about, and whom it asked for what."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", lambda m: self._note(m.type, m.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(f"{kind}: {text}")

    def open(self, url: str, view: str = "summary") -> None:
        """Load `url` at a view and wait until that view is there."""
        self.page.goto("about:blank")
        self.page.goto(f"{url}#{view}")
        name = view.partition("?")[0]
        self.page.wait_for_selector(f'[data-view="{name}"] > *')

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def outside_requests(self, inside: str) -> list[str]:
        """Requests that go neither to `inside` nor stay within the page."""
        allowed = (inside, "data:", "about:")
        return [url for url in self.requests if not url.startswith(allowed)]


@contextmanager
def serving(data: dict[str, Any]) -> Iterator[ViewerServer]:
    """A server that answers until the block ends."""
    with ViewerServer(data) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
