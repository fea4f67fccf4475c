"""What axe-core finds on each kind of page: nothing serious, in light and dark, on a phone and on a desk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import wfdsl
from tests.viewer.conftest import KEEP, NESTED, POOL, WRITTEN, conduct, conductor_of, nesting_pool, plan, solve

from .conftest import Viewer, Watched, in_thread, open_context
from .test_pages import ask

AXE = os.environ.get("WFDSL_AXE", "")
SIZES = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1280, "height": 900}}


def pages_of(home: Path) -> list[str]:
    """One address of each kind of page."""
    pool = home / "pool.toml"
    pool.write_text(POOL)
    two = wfdsl.Workflow.from_lists([0, 0], ["Plan it.", "Follow the plan."], [[], [0]])
    priced = ask(home, "How far?", two, pool=wfdsl.Pool.load(str(pool)), origin={"pool": str(pool)})
    nested = ask(home, workflow=NESTED, pool=nesting_pool())
    wrong = WRITTEN.replace("[[], [0]]", "[[], [1]]")
    workers = wfdsl.Pool.from_functions([plan, solve])
    conductor = conductor_of(wrong, WRITTEN, KEEP)
    conducted = in_thread(lambda: conductor.solve_sync("Q", workers, journal=home / "journal.db").run)
    redone = in_thread(lambda: conduct(home / "boss.toml", home / "journal.db"))
    views = [f"/runs/{run.id}?view={view}" for run in (nested, conducted) for view in ("conversation", "graph", "time")]
    return [
        "/",
        "/?text=nothing",
        *views,
        f"/runs/{nested.id}#step=1.0.1",
        f"/runs/{nested.id}/steps/1.0.1",
        f"/compare?run={priced.id}&run={nested.id}",
        f"/runs/{priced.id}/steps/1/redo",
        f"/runs/{redone.id}/steps/0.0.1/redo",
        "/playground",
        "/playground#wf=c3RlcCBhIGJ5IDA",
        "/evaluations",
        "/nothing",
    ]


@pytest.mark.skipif(not AXE, reason="WFDSL_AXE names no axe.min.js: `make browser` does")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(home: Path, viewer: Viewer, chromium: Any, size: str, scheme: str) -> None:
    source = Path(AXE).read_text("utf-8")
    context = open_context(chromium, viewer, viewport=SIZES[size], color_scheme=scheme)
    watched = Watched(context, viewer.root)
    found = []
    for path in pages_of(home):
        page = watched.go(path)
        page.wait_for_timeout(300)
        page.evaluate(source)
        for violation in page.evaluate("axe.run()")["violations"]:
            where = [node["html"][:120] for node in violation["nodes"][:3]]
            found.append((path, violation["id"], violation["impact"], where))
        too_wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if too_wide > 0:
            found.append((path, "too wide", "serious", [f"{too_wide} pixels"]))
    context.close()

    assert [each for each in found if each[2] in ("serious", "critical")] == []
