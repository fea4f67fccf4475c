"""Each finished call is durable before anything uses it; a resumed run makes no call again that has a reply."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from tests.interpreter.toy_workers import Answering, always, cancelled, in_turn, pool_of

from wfdsl import BudgetExhausted, RunFailed, Step, UsageError, Workflow
from wfdsl.errors import JournalFailure
from wfdsl.interpreter import journal_file
from wfdsl.interpreter.budget import Budget, BudgetUsage
from wfdsl.interpreter.config import RunConfig, RunRequest
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import full_id, remove, request_of, run_of, summaries
from wfdsl.interpreter.running import resume, run
from wfdsl.interpreter.tools import Tools
from wfdsl.protocols import Call, Reply, Usage, WorkerFailure
from wfdsl.workers.entry import Prices

if TYPE_CHECKING:
    from pathlib import Path

CHAIN = Workflow((Step(0, "a"), Step(0, "b", (0,)), Step(0, "c", "all")))
COPIES = Workflow((*(Step(0, "same") for _ in range(5)), Step(0, "pick", "all")))


def counting(texts: str = "reply") -> Answering:
    async def answer(call: Call) -> Reply:
        return Reply(f"{texts} {len(worker.calls)}", usage=Usage(3, 2), paid_usd=0.5, list_usd=0.5)

    worker = Answering(answer)
    return worker


def size_of(path: Path) -> int:
    return path.stat().st_size


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as connection:
        found = connection.execute(query).fetchall()
    connection.close()
    return found


async def test_a_reply_is_durable_before_the_next_step_uses_it(journal: Journal) -> None:
    seen: list[list[tuple[Any, ...]]] = []

    async def answer(call: Call) -> Reply:
        seen.append(rows(journal.path, "SELECT status FROM calls ORDER BY id"))
        return Reply("x")

    await run(CHAIN, "Q", pool_of(Answering(answer)), journal=journal)

    assert seen == [
        [("started",)],
        [("finished",), ("started",)],
        [("finished",), ("finished",), ("started",)],
    ]


async def test_a_run_that_failed_goes_on_where_it_stopped(journal: Journal) -> None:
    worker = in_turn(Reply("one"), WorkerFailure("HTTP 500", retryable=False), Reply("two"), Reply("three"))
    pool = pool_of(worker)
    with pytest.raises(RunFailed) as caught:
        await run(CHAIN, "Q", pool, journal=journal)
    assert caught.value.resumable

    done = await resume(caught.value.run_id, pool, journal=journal)

    assert [step.response for step in done.steps] == ["one", "two", "three"]
    assert [step.replayed for step in done.steps] == [True, False, False]
    assert len(worker.calls) == 4


async def test_a_spent_budget_is_counted_on_and_a_larger_one_goes_on(journal: Journal) -> None:
    worker = counting()
    with pytest.raises(BudgetExhausted) as caught:
        await run(CHAIN, "Q", pool_of(worker), journal=journal, budget=Budget(calls=2))
    run_id = caught.value.run.id

    with pytest.raises(BudgetExhausted):
        await resume(run_id, pool_of(worker), journal=journal)
    done = await resume(run_id, pool_of(worker), journal=journal, budget=Budget(calls=3))

    assert len(worker.calls) == 3
    assert done.charged == BudgetUsage(3, 15, 1.5)
    assert done.paid_usd == pytest.approx(1.5)


async def test_identical_copies_make_as_many_calls_and_each_is_replayed_as_itself(journal: Journal) -> None:
    worker = counting()
    first = await run(COPIES, "Q", pool_of(worker), journal=journal)

    again = await resume(first.id, pool_of(worker), journal=journal)

    assert len(worker.calls) == 6
    assert len({step.response for step in first.steps}) == 6
    assert [step.response for step in again.steps] == [step.response for step in first.steps]


@pytest.mark.parametrize(
    "change", [{"temperature": 0.9}, {"system_prompt": "Be brief."}, {"model": "other"}, {"name": "other"}]
)
async def test_a_worker_that_would_answer_otherwise_is_asked_again_only_where_that_is_accepted(
    journal: Journal, change: dict[str, Any]
) -> None:
    worker = counting()
    first = await run(CHAIN, "Q", pool_of(worker), journal=journal)
    changed = pool_of(worker, entries=[change])

    with pytest.raises(UsageError, match=r"step 0, worker .*: the journal has its reply, but to another .*--ask-again"):
        await resume(first.id, changed, journal=journal)
    assert len(worker.calls) == 3
    await resume(first.id, changed, journal=journal, ask_again=True)

    assert len(worker.calls) == 6


@pytest.mark.parametrize(
    ("finish", "limit", "fits"), [("stop", 200, True), ("length", 200, False), ("stop", 50, False)]
)
async def test_a_complete_reply_is_also_one_under_a_larger_limit_of_tokens(
    journal: Journal, finish: Any, limit: int, *, fits: bool
) -> None:
    failure = WorkerFailure("nothing but thinking", retryable=False)
    worker = in_turn(Reply("one", finish=finish), failure, Reply("two"), Reply("three"))
    with pytest.raises(RunFailed) as caught:
        await run(CHAIN, "Q", pool_of(worker, entries=[{"max_tokens": 100}]), journal=journal)

    resumed = resume(caught.value.run_id, pool_of(worker, entries=[{"max_tokens": limit}]), journal=journal)
    with nullcontext() if fits else pytest.raises(UsageError, match="another request"):
        assert [step.response for step in (await resumed).steps] == ["one", "two", "three"]

    assert len(worker.calls) == (4 if fits else 2)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"question": "Another?"}, "question"),
        ({"workflow": Workflow((*CHAIN.steps, Step(0, "d", "all")))}, "workflow"),
        ({"previous": ("subtask", "response")}, "previous"),
        ({"sample_id": "other"}, "sample_id"),
        ({"answer_settings": {"temperature": 0}}, "answer_settings"),
        ({"tools": Tools(definitions=({"type": "function", "function": {"name": "f"}},))}, "tools"),
        ({"question_for": "first"}, "question_for"),
        ({"seed": 3}, "seed"),
        ({"run_dead_steps": True}, "run_dead_steps"),
    ],
)
async def test_a_run_id_is_the_name_of_one_request(journal: Journal, change: dict[str, Any], what: str) -> None:
    worker = counting()
    asked: dict[str, Any] = {"workflow": CHAIN, "question": "Q", "run_id": "one"}
    first = await run(**asked, pool=pool_of(worker), journal=journal)

    with pytest.raises(UsageError, match=rf"\({what}\)"):
        await run(**{**asked, **change}, pool=pool_of(worker), journal=journal)

    assert len(worker.calls) == 3
    assert (await resume("one", pool_of(worker), journal=journal)).answer == first.answer
    other = await run(**{**asked, **change}, pool=pool_of(worker), journal=journal, ask_again=True)
    made = len(worker.calls)
    assert (await resume("one", pool_of(worker), journal=journal)).answer == other.answer
    assert len(worker.calls) == made


async def test_limits_and_names_of_a_run_may_change(journal: Journal) -> None:
    worker = counting()
    await run(CHAIN, "Q", pool_of(worker), journal=journal, run_id="one")

    changes: dict[str, Any] = {"budget": Budget(calls=9), "concurrency": 1, "names": ["x", "y", "z"], "timeout_s": 60.0}
    await run(CHAIN, "Q", pool_of(worker), journal=journal, run_id="one", origin={"file": "a.wf"}, **changes)

    assert len(worker.calls) == 3


async def test_one_job_that_fails_in_any_way_fails_alone(journal: Journal) -> None:
    def broken(connection: sqlite3.Connection) -> None:
        raise ZeroDivisionError

    async def do(operation: Any) -> Any:
        return await journal.writer.do(operation)

    results = await asyncio.gather(do(broken), do(lambda connection: 7), do(broken), return_exceptions=True)

    assert [type(result) for result in results] == [ZeroDivisionError, int, ZeroDivisionError]
    journal.writer.do_later(broken)
    assert (await run(CHAIN, "Q", pool_of(counting()), journal=journal)).status == "done"


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"properties": found}
    return found


async def test_parameters_of_tools_that_are_nested_too_deep_are_refused_where_they_come_in(journal: Journal) -> None:
    def tools(levels: int) -> Tools:
        return Tools(definitions=({"type": "function", "function": {"name": "f", "parameters": nested(levels)}},))

    for levels in (200, 490, 20_000):
        with pytest.raises(UsageError):
            tools(levels)
    done = await run(CHAIN, "Q", pool_of(counting()), journal=journal, tools=tools(50))
    assert done.status == "done"


@pytest.mark.parametrize("change", [{"description": "x"}, {"retries": 3}, {"limits": {"concurrency": 2}}])
async def test_what_changes_no_answer_changes_no_key(journal: Journal, change: dict[str, Any]) -> None:
    worker = counting()
    first = await run(CHAIN, "Q", pool_of(worker), journal=journal)

    await resume(first.id, pool_of(worker, entries=[change]), journal=journal)

    assert len(worker.calls) == 3


async def test_runs_with_a_common_sample_share_replies(journal: Journal) -> None:
    worker = counting()

    first = await run(CHAIN, "Q", pool_of(worker), journal=journal, sample_id="seed 1, question 7")
    again = await run(CHAIN, "Q", pool_of(worker), journal=journal, sample_id="seed 1, question 7")
    await run(CHAIN, "Q", pool_of(worker), journal=journal, sample_id="seed 2, question 7")

    assert again.answer == first.answer
    assert len(worker.calls) == 6


async def test_of_two_replies_to_one_call_the_first_is_used_by_both(journal: Journal) -> None:
    one = Workflow((Step(0, "a"),))
    both_asked = asyncio.Event()

    async def answer(call: Call) -> Reply:
        number = len(worker.calls)
        if number == 2:
            both_asked.set()
        await both_asked.wait()
        await asyncio.sleep(0.05 * number)
        return Reply(f"reply {number}")

    worker = Answering(answer)
    runs = (run(one, "Q", pool_of(worker), journal=journal, sample_id="common") for _ in range(2))

    results = await asyncio.gather(*runs)

    assert [result.answer for result in results] == ["reply 1", "reply 1"]


async def test_replies_without_content_are_kept_as_charged_and_never_replayed(journal: Journal) -> None:
    worker = in_turn(Reply("", "empty", Usage(4, 0)), Reply("a"), Reply("b"), Reply("c"))

    done = await run(CHAIN, "Q", pool_of(worker, entries=[{"retries": 1}]), journal=journal)

    journal.close()
    statuses = [status for (status,) in rows(journal.path, "SELECT status FROM calls ORDER BY id")]
    assert statuses == ["rejected", "finished", "finished", "finished"]
    assert done.charged is not None
    assert done.charged.calls == 4


async def test_a_fallback_worker_s_reply_is_replayed_without_asking_the_first_again(journal: Journal) -> None:
    broken, saving = in_turn(WorkerFailure("down", retryable=False)), counting("saved")
    one = Workflow((Step(0, "a"),))
    entries: list[dict[str, Any]] = [{"fallback": "w1"}, {}]
    first = await run(one, "Q", pool_of(broken, saving, entries=entries), journal=journal)

    again = await resume(first.id, pool_of(broken, saving, entries=entries), journal=journal)

    assert again.answer == "saved 1"
    assert again.steps[0].answered_by == 1
    assert (len(broken.calls), len(saving.calls)) == (1, 1)


async def test_a_cancelled_call_is_lost_and_stays_charged(journal: Journal) -> None:
    pool = pool_of(always("x", delay_s=60), entries=[{"max_tokens": 100}])
    await cancelled(run(CHAIN, "Q", pool, journal=journal, run_id="the-run"), after_s=0.2)

    done = await resume("the-run", pool_of(counting(), entries=[{"max_tokens": 100}]), journal=journal)

    assert [(lost.path, lost.worker_name, lost.tokens) for lost in done.lost] == [((0,), "w0", 104)]
    assert done.charged == BudgetUsage(4, 104 + 15, 1.5)


async def test_a_run_is_worked_on_by_one_at_a_time(path: Path, journal: Journal) -> None:
    slow = pool_of(always("x", delay_s=0.3))
    at_work = asyncio.create_task(run(CHAIN, "Q", slow, journal=journal, run_id="the-run"))
    await asyncio.sleep(0.1)

    with Journal(path) as other, pytest.raises(UsageError, match=f"being worked on by process {os.getpid()}"):
        await resume("the-run", slow, journal=other)
    with pytest.raises(UsageError, match="being worked on by this process"):
        await resume("the-run", slow, journal=journal)

    assert (await at_work).answer == "x"
    assert (await resume("the-run", slow, journal=journal)).answer == "x"


async def test_a_conversation_budget_and_settings_survive_in_the_plan(path: Path, journal: Journal) -> None:
    await run(
        CHAIN,
        [{"role": "system", "content": "s"}, {"role": "user", "content": "Why\n so?"}],
        pool_of(counting()),
        journal=journal,
        config=RunConfig(seed=5, step_timeout_s=60.0, question_for="first"),
        names=["x", "y", "z"],
        budget=Budget(tokens=10**6),
        concurrency=2,
        previous=("earlier", "its answer"),
        run_id="the-run",
        origin={"pool": "local"},
    )

    plan = request_of(path, "the-run")

    assert RunRequest.from_json(plan.to_json()) == plan
    assert plan.config == RunConfig(seed=5, step_timeout_s=60.0, question_for="first", concurrency=2)
    assert (plan.workflow, plan.names, plan.previous) == (CHAIN, ("x", "y", "z"), ("earlier", "its answer"))
    assert (plan.budget, plan.origin, plan.title) == (Budget(tokens=10**6), {"pool": "local"}, "Why so?")


def test_a_journal_lies_where_wfdsl_home_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path))
    here = journal_file.default_path()
    monkeypatch.delenv("WFDSL_HOME")
    elsewhere = journal_file.default_path()

    assert here == tmp_path / "journal.db"
    assert elsewhere.name == "journal.db"
    assert "wfdsl" in str(elsewhere)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
async def test_only_its_owner_can_read_a_journal(journal: Journal) -> None:
    await run(CHAIN, "Q", pool_of(counting()), journal=journal)

    files = [file for file in journal.path.parent.iterdir() if file.is_file()]

    assert {file.name for file in files} == {"journal.db", "journal.db-shm", "journal.db-wal"}
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


async def test_runs_are_listed_found_and_removed_and_the_file_gets_smaller(path: Path) -> None:
    done = await run(CHAIN, "Q", pool_of(counting("x" * 500_000)), journal=path, run_id="large")
    with pytest.raises(RunFailed):
        await run(CHAIN, "Q2", pool_of(in_turn(WorkerFailure("down", retryable=False))), journal=path, run_id="small")
    assert [(found.title, found.status, found.charged.calls) for found in summaries(path)] == [
        ("Q2", "failed", 1),
        ("Q", "done", 3),
    ]
    assert (full_id(path, "last"), full_id(path, "lar"), run_of(path, "large")) == ("small", "large", done)
    assert size_of(path) > 500_000

    assert remove(path, ["large"]) == 1

    assert size_of(path) < 100_000
    assert rows(path, "SELECT count(*) FROM calls") == [(1,)]
    with pytest.raises(UsageError, match="has no run"):
        run_of(path, "large")


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("PRAGMA user_version = 99", "version 99"),
        ("PRAGMA user_version = 4", "version 4"),
        ("PRAGMA application_id = 0", "another program"),
    ],
)
def test_a_journal_of_another_version_and_another_programs_file_are_left_alone(
    path: Path, statement: str, what: str
) -> None:
    Journal(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    before = path.read_bytes()

    for opened in (Journal, summaries):
        with pytest.raises(JournalFailure, match=what):
            opened(path)

    assert path.read_bytes() == before
    path.write_text("hello " * 1000)
    with pytest.raises(JournalFailure, match="not a database"):
        Journal(path)
    assert path.read_text() == "hello " * 1000


async def test_a_locked_journal_is_an_error_and_no_answer_is_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "_BUSY_TIMEOUT_MS", 50)

    async def answer(call: Call) -> Reply:
        locker.execute("BEGIN IMMEDIATE")
        return Reply("lost")

    with Journal(path) as journal:
        locker = sqlite3.connect(path, isolation_level=None)
        with pytest.raises(RunFailed, match="another program holds it") as caught:
            await run(CHAIN, "Q", pool_of(Answering(answer)), journal=journal)
        locker.close()

    assert caught.value.run.steps[0].response is None


_FILL = """
import asyncio, resource, signal, sys
from tests.interpreter.test_journal import CHAIN, counting
from tests.interpreter.toy_workers import pool_of
from wfdsl import RunFailed
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.running import run

async def main():
    with Journal(sys.argv[1]) as journal:
        await run(CHAIN, "Q", pool_of(counting()), journal=journal)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
        try:
            while True:
                await run(CHAIN, "Q" * 3000, pool_of(counting()), journal=journal)
        except RunFailed as error:
            print(error.resumable, error)
            print([step.status for step in error.run.steps])

asyncio.run(main())
"""


def test_a_full_disk_ends_the_run_with_a_clear_error(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FILL, str(path)], capture_output=True, text=True, timeout=60, check=False
    )

    message, statuses = done.stdout.splitlines()
    assert "free some space there" in message
    assert message.startswith("True ")
    assert "'failed'" in statuses
    assert done.returncode == 0, done.stderr
    assert resource.RLIM_INFINITY in resource.getrlimit(resource.RLIMIT_FSIZE)


async def test_resume_keeps_the_runs_limit_of_calls_in_flight_and_its_time_limits(journal: Journal) -> None:
    worker = in_turn(WorkerFailure("HTTP 500", retryable=False), *(Reply("x") for _ in range(6)), delay_s=0.01)
    with pytest.raises(RunFailed) as caught:
        await run(COPIES, "Q", pool_of(worker), journal=journal, concurrency=1, timeout_s=50.0, step_timeout_s=20.0)

    done = await resume(caught.value.run_id, pool_of(worker), journal=journal)

    assert worker.most_in_flight == 1
    assert (done.settings["concurrency"], done.settings["timeout_s"], done.settings["step_timeout_s"]) == (1, 50, 20)


async def test_resume_with_one_limit_keeps_the_runs_other_limits(journal: Journal) -> None:
    worker = counting()
    pool = pool_of(worker, entries=[{"max_tokens": 100, "prices": Prices(input=0.0, output=5000.0)}])
    with pytest.raises(BudgetExhausted) as caught:
        await run(CHAIN, "Q", pool, journal=journal, budget=Budget(calls=1, usd=0.7))

    with pytest.raises(BudgetExhausted, match=r"\$0.7 has"):
        await resume(caught.value.run.id, pool, journal=journal, budget=Budget(calls=100))

    assert len(worker.calls) == 1
