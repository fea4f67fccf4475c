"""A step is redone in a new run: only it and what depends on it is asked, as a real server counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.interpreter.chat_server import ChatServer

import wfdsl
from wfdsl import BudgetExhausted, Pool, Run
from wfdsl.cli.main import main
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.journal_file import default_path
from wfdsl.interpreter.journal_reading import full_id, run_of, summaries

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = """\
step plan by chat: "Plan."
step left by chat sees plan: "Go left."
step right by chat sees plan: "Go right."
step check by chat sees left: "Check it."
step choose by chat sees right, check: "Choose."
"""


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as chat:
        yield chat


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ChatServer) -> Run:
    """A run of five steps, in the journal."""
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.chdir(tmp_path)
    Path("five.wf").write_text(FILE)
    prices = "max_tokens = 100\nprices = { input = 1.0, output = 1.0 }"
    Path("pool.toml").write_text(server.pool_file("chat", "other", more=prices))
    assert main(["run", "five.wf", "-q", "Q", "--pool", "pool.toml"]) == 0
    assert len(server.asked) == 5
    return last_run()


def last_run() -> Run:
    return run_of(default_path(), full_id(default_path(), "last"))


def test_only_the_step_and_what_depends_on_it_is_asked_again(
    first: Run, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    code = main(["runs", "redo", "last", "--step", "left"])

    out, err = capsys.readouterr()
    again = last_run()
    assert code == 0
    assert server.asked[5:] == ["Go left.", "Check it.", "Choose."]
    assert out == f"{again.answer}\n"
    kept = [True, False, True, False, False]
    assert [step.replayed for step in again.steps] == kept
    assert [step.response == old.response for step, old in zip(again.steps, first.steps, strict=True)] == kept
    assert again.steps[1].response in [message["content"] for message in again.steps[3].messages]
    assert err.splitlines()[0].startswith("asked again: left, check, choose (cost: at most $0.00")
    assert err.splitlines()[0].endswith("2 kept replies cost nothing")
    assert again.charged is not None
    assert (again.charged.calls, again.steps[0].paid_usd) == (3, 0.0)
    assert again.settings["origin"]["from"] == first.id
    assert run_of(default_path(), first.id) == first
    main(["runs", "show", "last"])
    assert f"From run {first.id}, with step 1 asked again." in capsys.readouterr().out


def test_the_step_may_get_another_subtask_and_another_worker(first: Run, server: ChatServer) -> None:
    code = main(["runs", "redo", first.id, "--step", "3", "--subtask", "Check it twice.", "--worker", "other"])

    again = last_run()
    assert code == 0
    assert server.asked[5:] == ["Check it twice.", "Choose."]
    assert (again.steps[3].worker_name, again.workflow[3].subtask) == ("other", "Check it twice.")
    assert "Check it twice." in [message["content"] for message in again.steps[4].messages]


def test_a_dry_run_says_the_price_and_neither_asks_nor_writes(
    first: Run, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    code = main(["runs", "redo", "last", "--step", "check", "--dry-run"])

    out = capsys.readouterr().out
    assert code == 0
    assert out.startswith("check: worker 0 (chat)\n")
    assert f"assistant: {first.steps[1].response}" in out
    assert "assistant: {response of step 3}" in out
    assert "calls: 2\n" in out
    assert "cost at most: $0.0004\n" in out
    assert (len(server.asked), len(summaries(default_path()))) == (5, 1)


def test_an_interrupted_redo_is_resumed_and_can_be_redone(first: Run, server: ChatServer) -> None:
    spent = main(["runs", "redo", first.id, "--step", "left", "--budget-calls", "1"])
    resumed = main(["runs", "resume", "last", "--budget-calls", "9"])

    assert (spent, resumed) == (4, 0)
    assert server.asked[5:] == ["Go left.", "Check it.", "Choose."]
    assert main(["runs", "redo", "last", "--step", "choose"]) == 0
    assert server.asked[8:] == ["Choose."]


def test_a_pool_that_has_changed_is_noticed_before_anything_is_asked(
    first: Run, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pool.toml").write_text(Path("pool.toml").read_text().replace('model = "chat"', 'model = "new"'))

    code = main(["runs", "redo", first.id, "--step", "choose"])

    assert (code, len(server.asked)) == (2, 5)
    assert "worker chat: the journal has its reply, but to another request" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["last", "--step", "lft"], "has no step 'lft': its steps are plan, left, right, check, choose"),
        (["last", "--step", "5"], "has no step '5'"),
        (["last", "--step", "1", "--worker", "x"], "has no worker 'x': its workers are chat, other"),
        (["last", "--step", "1", "--round", "0"], "has no rounds"),
    ],
)
@pytest.mark.usefixtures("first")
def test_what_cannot_be_redone_is_said_in_one_line(
    arguments: list[str], message: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    code = main(["runs", "redo", *arguments])

    err = capsys.readouterr().err.splitlines()
    assert (code, len(err), len(server.asked)) == (2, 1, 5)
    assert message in err[0]


async def test_a_program_redoes_a_step(first: Run, server: ChatServer) -> None:
    pool = Pool.load("pool.toml")

    again = await wfdsl.redo(first.id, "check", pool, journal=default_path(), subtask="Check.", worker=1)
    with pytest.raises(BudgetExhausted):
        await wfdsl.redo(first.id, 0, pool, journal=default_path(), budget=Budget(calls=2))

    assert server.asked[5:7] == ["Check.", "Choose."]
    assert len(server.asked) == 9
    assert again.id != first.id
    assert again.settings["origin"]["step"] == "3"
