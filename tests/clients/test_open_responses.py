"""The compliance suite of Open Responses, from a checkout of it; what it says is kept beside the table of clients."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from .conftest import Tried
from .table import ABSENT, HERE, SUITE, YES, one_line

FOLDER = os.environ.get("WFDSL_OPEN_RESPONSES", "")
"""A checkout of openresponses/openresponses with its packages installed."""


@pytest.mark.skipif(not FOLDER, reason="needs a checkout of openresponses: set WFDSL_OPEN_RESPONSES")
def test_the_compliance_suite_finds_only_what_is_known_to_be_missing(tried: Tried) -> None:
    suite = [str(HERE / "node_modules/.bin/bun"), "run", "bin/compliance-test.ts"]
    options = ["--base-url", tried.server.url, "--api-key", "none", "--model", "tools", "--json"]

    done = subprocess.run([*suite, *options], cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False)

    results = {each["id"]: each for each in json.loads(done.stdout)["results"]}
    said = {name: one_line("; ".join(each.get("errors", []))) for name, each in results.items()}
    found = {name: YES if each["status"] == "passed" else f"no: {said[name]}" for name, each in results.items()}
    version = max(path.name for path in Path(FOLDER, "public/openapi").glob("20*"))
    tried.results[SUITE] = {"version": version, **found}
    assert {name for name, what in found.items() if what != YES} == {name for name in found if name in ABSENT}
