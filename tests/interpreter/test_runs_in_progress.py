"""A run that is looked at while its process works on it: its calls are running, and none of them is lost."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from tests.forked import Program
from tests.interpreter.chat_server import ChatServer

from wfdsl import Step, Workflow
from wfdsl.cli.main import main
from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.budget import BudgetUsage
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.journal import Attempt
from wfdsl.interpreter.journal_reading import run_of, summaries, unfinished_run
from wfdsl.protocols import Reply, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wfdsl.interpreter.record import Run

THREE = Workflow((Step(0, "a"), Step(0, "b"), Step(0, "c", (0, 1))))
WRITTEN = 'model_id = [0, 0]\nsubtasks = ["Plan.", "Solve."]\naccess_list = [[], [0]]'


def row(*path: int, status: str = "started", text: str | None = None, error: str = "", **reply: object) -> Attempt:
    """A call; with a text it has been answered, and with an error it has failed."""
    status = "finished" if text is not None else "failed" if error else status
    kept = None if text is None else Reply(text, **reply)  # type: ignore[arg-type]
    finished = None if status == "started" else 2.0
    return Attempt(path, "w", status, 1.0, finished, error, kept, BudgetUsage(1, 10, 0.5))


def record(*rows: Attempt, workflow: Workflow = THREE, is_running: bool = True) -> Run:
    return unfinished_run("r", RunRequest(workflow=workflow, question="Q"), rows, 0.0, is_running=is_running)


def test_a_call_in_flight_is_running_and_lost_once_its_process_has_died() -> None:
    run = record(row(0), row(1, text="yes"))

    assert (run.status, run.lost, run.finished) == ("running", (), None)
    assert [step.status for step in run.steps] == ["running", "done", "waiting"]
    assert [step.finished for step in run.steps] == [None, 2.0, None]
    died = record(row(0), row(1, text="yes"), is_running=False)
    assert [lost.path for lost in died.lost] == [(0,)]
    assert [step.status for step in died.steps] == ["stopped", "done", "waiting"]


def test_a_step_whose_tools_are_called_is_running() -> None:
    calls = row(0, text="", finish="tool_calls", tool_calls=(ToolCall("add", "{}", "1"),))

    assert record(calls).steps[0].status == "running"
    assert record(calls, is_running=False).steps[0].status == "stopped"


def test_of_a_conductors_rounds_only_the_last_one_is_running() -> None:
    first = (row(0, 0, -1, text=WRITTEN), row(0, 0, 0, text="planned"), row(0, 0, 1, error="HTTP 400"))
    second = (row(0, 1, -1, text=WRITTEN), row(0, 1, 0))

    run = record(*first, *second, workflow=ROOT_WORKFLOW)
    (node,) = run.steps

    assert node.status == "running"
    assert [(nested.status, nested.finished) for nested in node.nested] == [("stopped", 2.0), ("running", None)]
    assert [[step.status for step in nested.steps] for nested in node.nested] == [
        ["done", "failed"],
        ["running", "waiting"],
    ]


def test_a_round_that_is_over_is_done_while_the_conductor_writes_the_next() -> None:
    first = (row(0, 0, -1, text=WRITTEN), row(0, 0, 0, text="planned"), row(0, 0, 1, text="solved"))

    (node,) = record(*first, row(0, 1, -1), workflow=ROOT_WORKFLOW).steps

    assert (node.status, [nested.status for nested in node.nested]) == ("running", ["done"])


def test_all_replies_count_as_cost_those_that_were_rejected_or_called_tools_included() -> None:
    def costing(*path: int, status: str, text: str = "", **reply: object) -> Attempt:
        kept = Reply(text, usage=Usage(7, 3), paid_usd=0.25, list_usd=0.5, **reply)  # type: ignore[arg-type]
        return Attempt(path, "w", status, 1.0, 2.0, "", kept)

    called = costing(1, status="finished", tool_calls=(ToolCall("add", "{}", "1"),))
    steps = record(costing(0, status="rejected"), costing(0, status="finished", text="x"), called).steps
    written = costing(0, 0, -1, status="finished", text="no workflow")
    (node,) = record(costing(0, 0, -1, status="rejected"), written, workflow=ROOT_WORKFLOW).steps

    costs = [(step.usage, step.paid_usd, step.list_usd) for step in (*steps[:2], node)]
    assert costs == [(Usage(14, 6), 0.5, 1.0), (Usage(7, 3), 0.25, 0.5), (Usage(14, 6), 0.5, 1.0)]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(delay_s=60.0) as chat:
        yield chat


@pytest.fixture
def flying(tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """A process whose calls of steps a and b are in flight."""
    (tmp_path / "two.wf").write_text('step a by 0: "A."\nstep b by 1: "B."\nstep c by 0 sees a, b: "C."\n')
    (tmp_path / "pool.toml").write_text(server.pool_file("m", "n"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    process = Program("-m", "wfdsl", "run", "two.wf", "Q", "--pool", "pool.toml", "--quiet")
    server.wait_for(2)
    yield process
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_run_in_another_process_is_shown_as_running_until_that_is_killed(
    flying: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*command: str) -> str:
        main(list(command))
        return "".join(capsys.readouterr())

    traced, shown, resumed = said("runs", "show", "last"), said("show", "--run", "last"), said("runs", "resume", "last")

    assert f"being worked on by process {flying.pid}" in resumed
    assert "a: m, running" in traced
    assert "c: worker 0, waiting" in traced
    for text in (traced, shown, resumed):
        assert "in flight" not in text
        assert "stopped" not in text
    flying.send_signal(signal.SIGKILL)
    flying.wait()
    traced, shown = said("runs", "show", "last"), said("show", "--run", "last")
    assert "a: m, stopped" in traced
    assert traced.count("was in flight when its process ended; it stays charged") == 2
    assert "stopped" in shown
    journal = tmp_path / "journal.db"
    assert len(run_of(journal, summaries(journal)[0].id).lost) == 2


def test_a_call_that_an_earlier_process_lost_stays_lost_while_it_is_made_again() -> None:
    run = record(row(0, status="lost"), row(0))

    assert [lost.path for lost in run.lost] == [(0,)]
    assert run.steps[0].status == "running"
