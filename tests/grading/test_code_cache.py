"""The same program with the same tests runs once; anything else runs."""

from __future__ import annotations

import pytest

from tests.grading.sandboxes import LIMITS, needs_sandbox
from wfdsl.grading.code import grade_program, key_of
from wfdsl.grading.sandbox import Sandbox
from wfdsl.grading.sandbox.sandbox import Slot
from wfdsl.tasks.task import CodeTests

TESTS = CodeTests(style="function", inputs=("[1]",), expected=("1",), entry_point="f", timeout_s=5)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One for each program that was really run."""
    seen: list[object] = []
    real = Slot.processes

    def counted(self: Slot, *roles: str, seconds: float) -> object:
        seen.append(roles)
        return real(self, *roles, seconds=seconds)  # type: ignore[arg-type]

    monkeypatch.setattr(Slot, "processes", counted)
    return seen


@needs_sandbox
async def test_a_known_verdict_is_the_same_verdict_unless_time_ran_out(runs: list[object]) -> None:
    sandbox = Sandbox(slots=1, limits=LIMITS)
    await sandbox.probe()
    runs.clear()
    short = TESTS.model_copy(update={"timeout_s": 0.3})

    first, second, other, late, later = [
        await grade_program(f"def f(x):\n    {body}", tests, sandbox=sandbox)
        for body, tests in (("return 22", TESTS), ("return 22", TESTS), ("return 1", TESTS))
        + (("while 1: pass", short),) * 2
    ]

    assert first == second
    assert (first.outcome, other.outcome, late.timed_out, later.timed_out) == ("wrong", "right", True, True)
    assert len(runs) == 4


def test_a_key_changes_with_everything_that_a_verdict_depends_on() -> None:
    changed = TESTS.model_copy(update={"expected": ("2",)})
    later = TESTS.model_copy(update={"timeout_s": 6.0})

    keys = {key_of("a", TESTS, ""), key_of("b", TESTS, ""), key_of("a", changed, ""), key_of("a", later, "")}

    assert len(keys | {key_of("a", TESTS, "packages")}) == 5
