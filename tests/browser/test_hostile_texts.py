"""Texts that try to run a script or to fetch something, wherever a model or a person can put a text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.test_hostile_texts import TEXTS, hostile_runs

from .conftest import Viewer, Watched, in_thread, open_context


@pytest.fixture(scope="module")
def place(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Watched]]:
    """A journal's folder and a page of its viewer, for all texts: the list shows those of earlier tests too."""
    home = tmp_path_factory.mktemp("home")
    viewer = Viewer(home)
    context = open_context(chromium, viewer)
    yield home, Watched(context, viewer.root)
    context.close()
    assert viewer.stop() == 0


@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_text_is_only_ever_text(place: tuple[Path, Watched], text: str) -> None:
    home, watched = place
    runs = in_thread(lambda: hostile_runs(home, text))
    first, second = (run.id for run in runs)
    paths = ["/", f"/compare?run={first}&run={second}"]
    for run in (first, second):
        paths += [f"/runs/{run}?view={view}#step=0" for view in ("conversation", "graph", "time")]
        paths += [f"/runs/{run}/steps/3", f"/runs/{run}/export.md"]

    for path in paths:
        page = watched.go(path)
        page.wait_for_load_state("networkidle") if "text/plain" in path else page.wait_for_timeout(60)
        assert page.evaluate("window.hacked") is None, path
        assert page.url.startswith(watched.root), path
    assert watched.page.context.pages == [watched.page]
    assert watched.faults == []
