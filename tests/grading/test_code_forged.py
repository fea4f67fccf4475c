"""Replies that no honest program gives, and results that cannot be written: wrong, and no failure of the grader."""

from __future__ import annotations

import json
import time
from typing import Any, cast

import pytest

from wfdsl.grading.code import run_tests
from wfdsl.grading.sandbox.inside.values import pack
from wfdsl.grading.sandbox.isolation import Isolation
from wfdsl.grading.sandbox.sandbox import Slot
from wfdsl.grading.sandbox.usage import Usage
from wfdsl.tasks.task import CodeTests

TESTS = CodeTests(style="function", inputs=("[1]",), expected=("5",), entry_point="f")
LOADED = b'["loaded", []]'
HUGE = 10**5000


class ForgedSlot:
    """A slot whose process sends these frames, whatever it is asked."""

    isolation = Isolation("bubblewrap", is_private=False)

    def __init__(self, *frames: bytes) -> None:
        self._frames = list(frames)

    def processes(self, *roles: str, seconds: float) -> ForgedSlot:
        return self

    async def __aenter__(self) -> tuple[ForgedSlot]:
        return (self,)

    async def __aexit__(self, *error: object) -> None:
        return None

    def usage(self) -> Usage:
        return Usage()

    async def send(self, payload: bytes) -> None:
        return None

    async def receive(self) -> bytes:
        return self._frames.pop(0)


async def outcome(*frames: bytes) -> tuple[str, str]:
    verdict = await run_tests("", TESTS, cast("Slot", ForgedSlot(*frames)))
    return verdict.outcome, verdict.reason


# fmt: off
LOADING: list[Any] = [
    ["loaded", 5], ["loaded", None], ["loaded", "f"], ["loaded", [[]]], ["loaded", [5]], ["loaded", {"f": 1}],
    ["loaded"], [[], 1], [{}, []], [None], [], 5, "loaded", {"loaded": []}, ["result", 5, []], ["stuck", "it"],
    ["raised", 5, "it", True], ["raised", [], 5, True],
]
CALLING: list[Any] = [
    ["result", ["int", 5], []], ["result", ["int", [5]], []], ["result", [[], 1], []], ["result", {"a": 1}, []],
    ["result", ["list", 5], []], ["result", ["Decimal", "x"], []], ["result", ["object", 5], []], ["stuck", 5],
    ["result", ["dict", [1, 2, "1", 2]], []], ["raised", 5, 5, 5], ["loaded", 5], ["result", 5, 5],
]
# fmt: on


@pytest.mark.parametrize(
    ("is_loaded", "frame"), [*((False, frame) for frame in LOADING), *((True, frame) for frame in CALLING)]
)
async def test_a_forged_reply_to_loading_or_to_a_call_is_wrong(is_loaded: bool, frame: Any) -> None:
    assert (await outcome(*[LOADED] * is_loaded, json.dumps(frame).encode()))[0] == "wrong"


@pytest.mark.parametrize("value", [HUGE, [HUGE], {HUGE: 1}, {"a": -HUGE}], ids=lambda value: type(value).__name__)
async def test_a_result_with_an_integer_that_cannot_be_written_is_wrong(value: Any) -> None:
    packed = json.dumps(pack(value, lambda value: []))

    found, reason = await outcome(LOADED, f'["result", {packed}, []]'.encode())

    assert found == "wrong"
    assert "too large to show" in reason


COLLIDING = [["int", hex(number * (2**61 - 1))] for number in range(1, 40_000)]
"""Integers of one hash."""


@pytest.mark.parametrize(
    "packed",
    [
        ["set", COLLIDING],
        ["dict", [part for number in COLLIDING for part in (number, 0)]],
        ["Fraction", [hex(3**2_000_000), hex(7**1_200_000)]],
    ],
    ids=["set", "dict", "fraction"],
)
async def test_a_result_that_would_take_long_to_make_is_wrong_at_once(packed: list[Any]) -> None:
    begun = time.process_time()

    assert (await outcome(LOADED, json.dumps(["result", packed, []]).encode()))[0] == "wrong"
    assert time.process_time() - begun < 5
