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


WRONG: list[dict[str, Any]] = [
    {"concurrency": 0},
    {"concurency": 3},
    {"question_for": "none"},
    {"timeout_s": math.nan},
    {"names": ["a", "b"]},
    {"names": "a"},
    {"names": [1]},
    {"run_id": ""},
    {"run_id": "last"},
    {"run_id": "a/b\n"},
    {"budget": 5},
    {"on_event": 5},
    {"on_event": async_listener},
    {"journal": 5},
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("options", WRONG, ids=", ".join)
async def test_an_argument_that_cannot_be_used_is_refused_by_name_and_nothing_is_asked(
    options: dict[str, Any], streamed: bool
) -> None:
    worker = always("x")

    async def start() -> None:
        if streamed:
            assert [event async for event in stream(ONE, "Q", pool_of(worker), **options)]
        else:
            await run(ONE, "Q", pool_of(worker), **options)

    with pytest.raises(UsageError, match=next(iter(options))):
        await asyncio.wait_for(start(), 5)

    assert not worker.calls


@pytest.mark.parametrize(
    "question",
    [
        None,
        b"x",
        ["x"],
        [{"role": "tool", "content": "x"}],
        [{"role": "user", "content": None}],
        [{"role": "user", "content": [{"type": "image_url"}]}],
    ],
)
async def test_a_question_that_no_worker_could_be_shown_is_refused(question: Any) -> None:
    with pytest.raises(UsageError):
        await run(ONE, question, pool_of(always()))


@pytest.mark.parametrize(
    "options",
    [{"concurrency": 0}, {"budget": 5}, {"budget": BudgetTracker(Budget(calls=1))}, {"on_event": 5}],
    ids=", ".join,
)
async def test_resume_checks_its_arguments_too(tmp_path: Path, options: dict[str, Any]) -> None:
    done = await run(ONE, "Q", pool_of(always()), journal=tmp_path / "journal.db")

    with pytest.raises(UsageError, match=next(iter(options))):
        await resume(done.id, pool_of(always()), journal=tmp_path / "journal.db", **options)
