"""Arguments that cannot be used are refused by `run`, `stream` and `resume` before any worker is asked."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import pytest
from tests.interpreter.toy_workers import always, pool_of

from wfdsl import Budget, Step, UsageError, Workflow
from wfdsl.interpreter.budget import BudgetTracker
from wfdsl.interpreter.running import resume, run, stream

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl.interpreter.events import Event

ONE = Workflow((Step(0, "a"),))


async def async_listener(event: Event) -> None:
    """A listener that nobody would await."""


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"concurrency": 0}, "concurrency must be at least 1 (got 0)"),
    ({"concurrency": -1}, "concurrency must be at least 1 (got -1)"),
    ({"question_for": "none"}, "question_for must be 'all' or 'first'"),
    ({"timeout_s": math.nan}, "timeout_s must be a finite number (got nan)"),
    ({"names": ["a", "b"]}, "names must hold one name for each step: the workflow has 1 (got 2)"),
    ({"names": "a"}, "names must be a list with a text for each step (got 'a')"),
    ({"names": [1]}, "names must be a list with a text for each step (got [1])"),
    (
        {"run_id": ""},
        "run_id must be a text of printable characters, and not `last`, which means the newest run (got '')",
    ),
    (
        {"run_id": "a/b\n"},
        "run_id must be a text of printable characters, and not `last`, which means the newest run (got 'a/b\\n')",
    ),
    ({"sample_id": 4}, "sample_id must be a text (got 4)"),
    ({"budget": 5}, "budget must be a Budget, such as Budget(usd=1.0), or a BudgetTracker (got 5)"),
    ({"limiter": 3}, "limiter must be a ConcurrencyLimiter (got 3)"),
    ({"on_event": 5}, "on_event must be a plain function that takes an event, not an async one (got 5)"),
    ({"journal": 5}, "journal must be a Journal, or the path of one (got 5)"),
    ({"config": {"concurrency": 1}}, "config must be a RunConfig (got {'concurrency': 1})"),
    ({"previous": "ab"}, "previous must be a pair of texts, the subtask and its response (got 'ab')"),
    ({"origin": 5}, "origin must be a mapping of texts to texts (got 5)"),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("options", "message"), WRONG, ids=[next(iter(options)) for options, _ in WRONG])
async def test_an_argument_that_cannot_be_used_is_refused_and_nothing_is_asked(
    options: dict[str, Any], message: str, streamed: bool
) -> None:
    worker = always("x")

    async def start() -> None:
        if streamed:
            assert [event async for event in stream(ONE, "Q", pool_of(worker), **options)]
        else:
            await run(ONE, "Q", pool_of(worker), **options)

    with pytest.raises(UsageError) as caught:
        await asyncio.wait_for(start(), 5)

    assert str(caught.value) == message
    assert not worker.calls


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (None, "question must be a text or a list of chat messages (got None)"),
        (b"x", "question must be a text or a list of chat messages (got b'x')"),
        (["x"], 'question message 0 must have a "role"'),
        ([{"role": "tool", "content": "x"}], 'question message 0 must have a "role"'),
        ([{"role": "user", "content": None}], "the content of question message 0 must be a text (got None)"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "and other parts are not supported"),
    ],
)
async def test_a_question_that_no_worker_could_be_shown_is_refused(question: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        await run(ONE, question, pool_of(always()))

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be at least 1"),
        ({"budget": 5}, "budget must be a Budget"),
        ({"budget": BudgetTracker(Budget(calls=1))}, "budget must be a Budget"),
        ({"limiter": 3}, "limiter must be a ConcurrencyLimiter"),
        ({"on_event": 5}, "on_event must be a plain function"),
    ],
)
async def test_resume_checks_its_arguments_too(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    done = await run(ONE, "Q", pool_of(always()), journal=tmp_path / "journal.db")

    with pytest.raises(UsageError, match=message):
        await resume(done.id, pool_of(always()), journal=tmp_path / "journal.db", **options)
