"""The same program with the same tests runs once; anything else runs."""

from __future__ import annotations

import asyncio

import pytest

from tests.grading.sandboxes import needs_sandbox, the_sandbox
from wfdsl.grading import code
from wfdsl.grading.code import VerdictCache, grade_program, key_of
from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import CodeTests

TESTS = CodeTests(style="function", inputs=("[1]",), expected=("1",), entry_point="f", timeout_s=5)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that were really run."""
    seen: list[str] = []
    real = code._graded

    async def counted(program: str, *others: object) -> Verdict:
        seen.append(program)
        return await real(program, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(code, "_graded", counted)
    return seen


@needs_sandbox
async def test_many_who_ask_at_once_share_one_run(runs: list[str]) -> None:
    cache = VerdictCache()

    verdicts = await asyncio.gather(
        *(grade_program("def f(x): return 1", TESTS, sandbox=the_sandbox(), verdicts=cache) for _ in range(20))
    )

    assert {verdict.outcome for verdict in verdicts} == {"right"}
    assert len(runs) == 1


@needs_sandbox
async def test_a_known_verdict_is_the_same_verdict(runs: list[str]) -> None:
    cache = VerdictCache()

    first = await grade_program("def f(x): return 2", TESTS, sandbox=the_sandbox(), verdicts=cache)
    second = await grade_program("def f(x): return 2", TESTS, sandbox=the_sandbox(), verdicts=cache)
    other = await grade_program("def f(x): return 1", TESTS, sandbox=the_sandbox(), verdicts=cache)

    assert first == second
    assert (first.outcome, other.outcome) == ("wrong", "right")
    assert len(runs) == 2


@needs_sandbox
async def test_running_out_of_time_is_not_remembered(runs: list[str]) -> None:
    cache = VerdictCache()
    tests = TESTS.model_copy(update={"timeout_s": 0.3})

    for _ in range(2):
        verdict = await grade_program("def f(x):\n    while True: pass", tests, sandbox=the_sandbox(), verdicts=cache)
        assert (verdict.outcome, verdict.timed_out) == ("wrong", True)

    assert len(runs) == 2
    assert len(cache) == 0


def test_what_has_not_been_used_for_longest_goes_first() -> None:
    cache = VerdictCache(entries=2)
    cache.put(b"a", Verdict("right"))
    cache.put(b"b", Verdict("wrong"))
    cache.get(b"a")

    cache.put(b"c", Verdict("right"))

    assert [cache.get(key) is not None for key in (b"a", b"b", b"c")] == [True, False, True]


def test_a_key_changes_with_everything_that_a_verdict_depends_on() -> None:
    changed = TESTS.model_copy(update={"expected": ("2",)})
    later = TESTS.model_copy(update={"timeout_s": 6.0})

    keys = {key_of("a", TESTS, ""), key_of("b", TESTS, ""), key_of("a", changed, ""), key_of("a", later, "")}

    assert len(keys | {key_of("a", TESTS, "unsafe")}) == 5


@needs_sandbox
async def test_what_is_forgotten_is_run_again(runs: list[str]) -> None:
    cache = VerdictCache()

    for _ in range(2):
        await grade_program("def f(x): return 1", TESTS, sandbox=the_sandbox(), verdicts=cache)
        cache.clear()

    assert len(runs) == 2
