"""Chromium on the pages of `wfdsl view`, which runs as a process of its own. `make browser` runs these tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.running_server import RunningServer

_T = TypeVar("_T")
BROWSER = os.environ.get("WFDSL_BROWSER", "")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in Path(item.fspath).parents:
            item.add_marker(pytest.mark.browser)
            if not BROWSER:
                item.add_marker(pytest.mark.skip(reason="WFDSL_BROWSER names no Chromium: `make browser` does"))


def in_thread(work: Callable[[], _T]) -> _T:
    """Do what needs an event loop of its own: Playwright's is running in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


class Viewer(RunningServer):
    """A running `wfdsl view`."""

    def __init__(self, home: Path, *options: str) -> None:
        super().__init__(home, "-m", "wfdsl", "view", "--port", "0", *options, env={"WFDSL_HOME": str(home)})
        self.root = self.url.partition("/?")[0]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def viewer(home: Path) -> Iterator[Viewer]:
    found = Viewer(home)
    yield found
    assert found.stop() == 0


class Watched:
    """A page of the browser, with everything that it must not do: errors, dialogs, requests elsewhere."""

    def __init__(self, context: Any, root: str) -> None:
        self.root = root
        self.page = context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("console", self._console)
        self.page.on("request", self._request)

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.root, "file:", "data:", "blob:")):
            self.faults.append(f"request: {request.url}")

    def go(self, path: str) -> Any:
        self.page.goto(self.root + path)
        return self.page


def open_context(chromium: Any, viewer: Viewer, **options: Any) -> Any:
    """A browser context that has the key."""
    context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page = context.new_page()
    page.goto(viewer.url)
    page.close()
    return context


@pytest.fixture
def watched(chromium: Any, viewer: Viewer) -> Iterator[Watched]:
    context = open_context(chromium, viewer, permissions=["clipboard-read", "clipboard-write"])
    found = Watched(context, viewer.root)
    yield found
    context.close()
    assert found.faults == []
