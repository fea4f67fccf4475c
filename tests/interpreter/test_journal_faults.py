"""Values that a journal cannot hold end one run, and damage in one run leaves the others readable."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.interpreter.toy_workers import always, in_turn, pool_of

from wfdsl import RunFailed, Step, UsageError, Workflow
from wfdsl.errors import JournalFailure
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import run_of
from wfdsl.interpreter.running import run
from wfdsl.protocols import Reply, Usage, WorkerFailure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ONE = Workflow((Step(0, "a"),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "journal.db"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    with Journal(path) as opened:
        yield opened


async def test_a_failure_whose_text_is_not_valid_unicode_is_retried_and_kept(journal: Journal) -> None:
    broken = in_turn(WorkerFailure("bad \ud800", retryable=True), Reply("fine"))

    done = await run(ONE, "Q", pool_of(broken, entries=[{"retries": 1}]), journal=journal)

    assert done.answer == "fine"


async def test_an_error_in_a_record_is_valid_unicode(journal: Journal) -> None:
    with pytest.raises(RunFailed) as caught:
        await run(ONE, "Q", pool_of(in_turn(WorkerFailure("bad \ud800", retryable=False))), journal=journal)

    journal.close()
    assert caught.value.run.steps[0].error == "bad \ufffd"
    assert caught.value.run.error.endswith("bad \ufffd")
    assert run_of(journal.path, caught.value.run_id) == caught.value.run


async def test_a_reply_that_cannot_be_kept_ends_its_run_and_no_other(journal: Journal) -> None:
    huge = Reply("too much", usage=Usage(10**19, 1))
    odd = (run(ONE, "Q", pool_of(in_turn(huge)), journal=journal) for _ in range(3))
    plain = (run(ONE, f"Q{number}", pool_of(always("fine")), journal=journal) for number in range(20))

    *failed, after = await asyncio.gather(*odd, *plain, return_exceptions=True)
    failed, others = failed[:3], [*failed[3:], after]

    for error in failed:
        assert isinstance(error, RunFailed)
        assert isinstance(error.cause, JournalFailure)
        assert "cannot hold a value" in str(error)
    assert {done.answer for done in others if not isinstance(done, BaseException)} == {"fine"}
    assert (await run(ONE, "Q", pool_of(always("later")), journal=journal)).answer == "later"


@pytest.mark.parametrize("question", ["a\ud800b", [{"role": "user", "content": "a\ud800b"}]])
async def test_a_question_that_is_not_valid_unicode_is_refused_before_anything_is_asked(question: str) -> None:
    worker = always()

    with pytest.raises(UsageError, match=r"the question is not valid Unicode: .*'\\ud800' at character 1"):
        await run(ONE, question, pool_of(worker))

    assert worker.calls == []
