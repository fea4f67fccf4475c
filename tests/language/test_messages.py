"""What diagnostics say: every message and help that the corpora bring about, in one snapshot.

After a change of wording, look at the difference: `pytest tests/language/test_messages.py --update-messages`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.diagnostics.test_codes import NO_EXAMPLE
from tests.language.test_completion_corpus import cases, pool_of, text_of
from tests.language.test_workflow_file_corpus import CORPUS
from tests.language.test_workflow_file_corpus import pool_of as pool_of_file
from wfdsl import Checked, analyze
from wfdsl.language.codes import CODES

SNAPSHOT = Path(__file__).parent.parent / "snapshots" / "messages.txt"
_LONGEST = 60  # characters of a marked place that are shown


def _checked() -> Iterator[tuple[str, Checked]]:
    """Each text of the corpora with its name."""
    for case in cases():
        if "text" in case:
            yield (
                case["id"],
                analyze(text_of(case), pool=pool_of(case), max_steps=case["max_steps"], profile="lenient"),
            )
    for path in CORPUS:
        yield path.name, analyze(path.read_text("utf-8"), pool=pool_of_file(path), form="wf")
    for code in CODES.values():
        if code.wrong:
            yield code.name, analyze(code.wrong, form="wf" if code.form == "wf" else "completion")


def _lines() -> Iterator[str]:
    """Each message once, under the text that brings it about first."""
    shown: set[tuple[str, ...]] = set()
    for name, checked in _checked():
        for found in checked.diagnostics:
            said = (found.code, found.message, found.label, found.help)
            if said not in shown:
                shown.add(said)
                marked = checked.source.text[found.span.start : found.span.end][:_LONGEST]
                yield "\n  ".join([f"{name} {found.severity}[{found.code}] at {marked!a}", *filter(None, said[1:])])


def test_messages_say_what_they_said(pytestconfig: pytest.Config) -> None:
    said = "\n".join(_lines()) + "\n"
    if pytestconfig.getoption("--update-messages"):
        SNAPSHOT.write_text(said, "utf-8")

    assert said.splitlines() == SNAPSHOT.read_text("utf-8").splitlines()
    assert {name for name in CODES if f"[{name}]" not in said} <= NO_EXAMPLE
