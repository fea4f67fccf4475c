"""Reading takes time in proportion to the text, whatever the text is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.language.wf_families import FAMILIES
from tests.language.wf_reading import ToyPool
from wfdsl.language.file_expansion import expand
from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.source import Source

TraceFunction = Callable[["FrameType", str, object], Any]


def _work(text: str) -> int:
    """How many lines and calls reading takes: time without a clock."""
    count = 0

    def tick(frame: FrameType, event: str, argument: object) -> TraceFunction:
        nonlocal count
        count += 1
        return tick

    previous = sys.gettrace()
    sys.settrace(tick)
    try:
        tree, _ = read_workflow_file(Source(text))
        expand(tree, pool=ToyPool())
    finally:
        sys.settrace(previous)
    return count


@pytest.mark.parametrize("family", FAMILIES)
def test_twice_the_text_takes_about_twice_the_work(family: str) -> None:
    _work('step a by 0: "x"')
    base = 60

    once, twice = _work(FAMILIES[family](base)), _work(FAMILIES[family](base * 4))

    assert twice <= 6 * once
