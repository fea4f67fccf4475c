"""An evaluation that was killed is resumed: real processes, a real server that counts, and `kill -9`."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forked import Program
from tests.interpreter.chat_server import ChatServer

TASKS = 12
TRIALS = 2 * TASKS
CALLS = TASKS + 2 * TASKS


class SteadyServer(ChatServer):
    """Gives the same reply to the same messages, so that the results of two evaluations can be compared."""

    def answer(self, body: dict[str, Any]) -> str:
        super().answer(body)
        number = int(str(body["messages"][0]["content"]).split()[2])
        return f"The answer is {4 if number % 3 else 5}."


@pytest.fixture
def server() -> Iterator[SteadyServer]:
    chat = SteadyServer(delay_s=0.02)
    yield chat
    chat.close()


@pytest.fixture
def home(tmp_path: Path, server: SteadyServer) -> Path:
    (tmp_path / "pool.toml").write_text(
        '[pool]\nname = "counted"\n[[pool.workers]]\nname = "chat"\nprovider = "openai"\nmodel = "m"\n'
        f'base_url = "{server.url}"\nmax_tokens = 100\nretries = 8\nprices = {{ input = 1.0, output = 1.0 }}\n'
    )
    (tmp_path / "twice.wf").write_text('wfdsl 1\nstep a by 0: "Solve."\nstep b by 0 sees a: "Check."\n')
    rows = [{"id": f"t{n}", "question": f"What is {n} ?", "gold": "4", "kind": "text"} for n in range(TASKS)]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def evaluation(home: Path, *arguments: str) -> Program:
    environment = {**os.environ, "WFDSL_HOME": str(home / "home"), "OPENAI_API_KEY": "unused"}
    return Program("-m", "wfdsl", "eval", *arguments, "--no-plots", folder=home, env=environment)


def begun(home: Path, out: str) -> Program:
    what = ("--policy", "worker:chat", "--policy", "twice.wf", "--tasks", "tasks.jsonl", "--pool", "pool.toml")
    return evaluation(home, *what, "--out", out, "--parallel", "3")


def finished(process: Program, *, code: int = 0) -> str:
    assert process.wait(120) == code, process.stderr
    return process.stderr


def lasting(home: Path, out: str) -> list[tuple[Any, ...]]:
    """What results say that cannot depend on when they came; a line that was cut off is none."""
    lines = (home / out / "results.jsonl").read_text().split("\n")[:-1]
    names = ("policy", "task", "repeat", "outcome", "answer", "extracted", "input_tokens", "calls", "paid_usd")
    return sorted(tuple(json.loads(line)[name] for name in names) for line in lines)


@pytest.mark.slow
def test_an_evaluation_that_was_killed_twice_ends_as_if_it_had_never_been(home: Path, server: SteadyServer) -> None:
    chance = random.Random(0)
    finished(begun(home, "whole"))
    assert len(server.asked) == CALLS

    process = begun(home, "killed")
    for first, last in ((3, CALLS // 2), (CALLS // 2 + 4, CALLS - 8)):
        server.wait_for(CALLS + chance.randint(first, last))
        time.sleep(chance.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(0.1)  # what the server was still answering
        before, asked = lasting(home, "killed"), len(server.asked)
        process = evaluation(home, "--resume", "killed")
    finished(process)

    assert lasting(home, "killed") == lasting(home, "whole")
    assert set(before) <= set(lasting(home, "killed"))
    # Only calls that were in flight when the process died, of which no one knows how they ended, were made twice.
    assert CALLS <= len(server.asked) - CALLS <= CALLS + 2 * 3
    assert asked < len(server.asked)


@pytest.mark.slow
def test_an_interrupted_evaluation_says_how_to_go_on(home: Path, server: SteadyServer) -> None:
    process = begun(home, "out")
    for number, calls in ((signal.SIGINT, 8), (signal.SIGTERM, 20)):
        server.wait_for(calls)
        process.send_signal(number)

        err = finished(process, code=130)

        assert "to continue: wfdsl eval --resume out" in err
        assert "Traceback" not in err
        assert json.loads((home / "out" / "summary.json").read_text())["policies"]
        process = evaluation(home, "--resume", "out")
    finished(process)
    assert len(lasting(home, "out")) == TRIALS
