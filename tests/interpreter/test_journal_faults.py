"""Values that a journal cannot hold end one run, and damage in one run leaves the others readable."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from typing import TYPE_CHECKING

import pytest
from tests.interpreter.toy_workers import always, in_turn, pool_of

from wfdsl import RunFailed, Step, UsageError, Workflow
from wfdsl.cli.main import main
from wfdsl.errors import JournalFailure
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import run_of
from wfdsl.interpreter.running import resume, run
from wfdsl.protocols import Reply, Usage, WorkerFailure

if TYPE_CHECKING:
    from pathlib import Path

ONE = Workflow((Step(0, "a"),))
TWO = Workflow((Step(0, "first"), Step(0, "second", (0,))))


async def test_a_failure_whose_text_is_not_valid_unicode_is_retried_and_kept(journal: Journal) -> None:
    broken = WorkerFailure("bad \ud800", retryable=True)
    pool = pool_of(in_turn(broken, Reply("fine"), broken, broken), entries=[{"retries": 1}])

    assert (await run(ONE, "Q", pool, journal=journal)).answer == "fine"
    with pytest.raises(RunFailed) as caught:
        await run(ONE, "Q", pool, journal=journal)

    journal.close()
    assert caught.value.run.steps[0].error == "bad \ufffd (2 attempts)"
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


DAMAGE = {
    "reply-not-json": "UPDATE calls SET reply = '{oops' WHERE run = 2",
    "reply-without-text": "UPDATE calls SET reply = '{}' WHERE run = 2",
    "reply-missing": "UPDATE calls SET reply = NULL WHERE run = 2",
    "record-a-number": "UPDATE runs SET record = 7 WHERE number = 2",
    "record-cut-off": "UPDATE runs SET record = substr(record, 1, 50) WHERE number = 2",
    "request-without-workflow": "UPDATE runs SET request = '{}' WHERE number = 2",
}


@pytest.fixture
def two_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal with a run `good` and then a run `bad`."""
    monkeypatch.setenv("WFDSL_HOME", str(path.parent))
    for run_id in ("good", "bad"):
        asyncio.run(run(TWO, "A question?", pool_of(always("a reply of some length")), journal=path, run_id=run_id))
    return path


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("kind", [kind for kind in DAMAGE if "reply" not in kind])
def test_a_damaged_run_is_named_and_blocks_no_other(
    two_runs: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(two_runs, DAMAGE[kind])

    exported = main(["runs", "export"])
    out, err = capsys.readouterr()

    assert (main(["runs", "show", "bad"]), exported) == (2, 2)
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["good"]
    assert ("wfdsl runs rm bad" in err, err.count("\n")) == (True, 1)
    assert [main(["runs", "show", "good"]), main(["runs"]), main(["runs", "rm", "bad"])] == [0, 0, 0]
    assert main(["runs", "export"]) == 0


@pytest.mark.parametrize("kind", [kind for kind in DAMAGE if "record" not in kind])
def test_a_damaged_run_is_not_resumed_and_its_worker_not_asked(two_runs: Path, kind: str) -> None:
    worker = always("other")
    change(two_runs, DAMAGE[kind])

    with pytest.raises(JournalFailure, match="run bad"):
        asyncio.run(resume("bad", pool_of(worker), journal=two_runs))

    assert worker.calls == []


@pytest.mark.parametrize("command", [["runs", "export"], ["runs", "show", "good"], ["runs", "rm", "good"]])
def test_a_journal_without_its_tables_is_one_clear_error(two_runs: Path, command: list[str]) -> None:
    change(two_runs, "DROP TABLE runs")

    assert main(command) == 2


@pytest.mark.parametrize("seed", range(3))
def test_no_bytes_overwritten_in_the_file_end_in_a_traceback(
    two_runs: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, data = random.Random(seed), bytearray(two_runs.read_bytes())
    start = chance.randrange(100, len(data) - 600)
    data[start : start + 600] = chance.randbytes(600)
    two_runs.write_bytes(data)

    commands = (
        ["runs"],
        ["runs", "export"],
        ["runs", "show", "last"],
        ["runs", "resume", "bad"],
        ["runs", "rm", "bad"],
    )
    codes = [main(command) for command in (*commands, ["runs", "rm", "--days", "0"])]

    assert set(codes) <= {0, 2}
    assert "Traceback" not in capsys.readouterr().err
