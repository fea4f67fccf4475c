"""A run that was killed is resumed: real processes, a real server that counts, and `kill -9`."""

from __future__ import annotations

import json
import os
import pty
import random
import signal
import sqlite3
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.interpreter.chat_server import ChatServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WIDTH = 38
CALLS = WIDTH + 2
SUBTASKS = [f"Attempt {index}." for index in range(WIDTH)] + ["Compare.", "Conclude."]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    chat = ChatServer(delay_s=0.03)
    yield chat
    chat.close()


@pytest.fixture
def home(tmp_path: Path, server: ChatServer) -> Path:
    """A folder with a workflow of 40 calls, a pool, and room for the journal."""
    access: list[Any] = [[] for _ in range(WIDTH)] + [list(range(WIDTH)), "all"]
    lists = f"model_id = {[0] * CALLS}\nsubtasks = {json.dumps(SUBTASKS)}\naccess_list = {json.dumps(access)}"
    (tmp_path / "forty.txt").write_text(lists)
    (tmp_path / "pool.toml").write_text(
        '[pool]\nname = "counted"\n[[pool.workers]]\nname = "chat"\nprovider = "openai"\nmodel = "m"\n'
        f'base_url = "{server.url}"\nmax_tokens = 100\nretries = 8\nprices = {{ input = 1.0, output = 1.0 }}\n'
    )
    return tmp_path


def wfdsl(home: Path, *arguments: str, own_group: bool = False) -> subprocess.Popen[str]:
    environment = {**os.environ, "WFDSL_HOME": str(home), "OPENAI_API_KEY": "unused"}
    return subprocess.Popen(
        [sys.executable, "-m", "wfdsl", *arguments],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=own_group,
    )


def run_forty(home: Path, *, own_group: bool = False) -> subprocess.Popen[str]:
    arguments = (
        "forty.txt",
        "-q",
        "Q",
        "--pool",
        "pool.toml",
        "--max-steps",
        "40",
        "--set",
        "run.concurrency=4",
        "--json",
    )
    return wfdsl(home, "run", *arguments, own_group=own_group)


def finished(process: subprocess.Popen[str], *, code: int = 0) -> dict[str, Any]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    trace: dict[str, Any] = json.loads(out)
    return trace


def journal_rows(home: Path) -> list[tuple[int, str, str | None]]:
    """Step, status and reply of each call in the journal."""
    connection = sqlite3.connect(home / "journal.db")
    rows = connection.execute("SELECT path, status, reply FROM calls ORDER BY id").fetchall()
    connection.close()
    return [(json.loads(path)[0], status, reply and json.loads(reply)["text"]) for path, status, reply in rows]


def killed_in_the_middle(home: Path, server: ChatServer, requests: int, wait_s: float) -> None:
    process = run_forty(home)
    server.wait_for(requests)
    time.sleep(wait_s)
    process.kill()
    process.communicate()
    time.sleep(0.1)  # what the server was still writing


def check_resumed(home: Path, server: ChatServer) -> None:
    """Resume, and hold the outcome to what journal and server say."""
    before, asked_before = journal_rows(home), list(server.asked)
    kept = {step: reply for step, status, reply in before if status == "finished"}
    in_flight = sorted(step for step, status, _ in before if status == "started")

    trace = finished(wfdsl(home, "runs", "resume", "last", "--json", "--set", "run.concurrency=4"))

    asked_again = [SUBTASKS.index(text) if text in SUBTASKS else -1 for text in map(_subtask, server.asked)]
    since = asked_again[len(asked_before) :]
    assert not set(since) & set(kept), "a call whose reply was kept was made again"
    assert sorted(since) == [step for step in range(CALLS) if step not in kept]
    assert sorted(lost["path"][0] for lost in trace["lost"]) == in_flight
    assert trace["charged"]["calls"] == CALLS + len(in_flight)
    for step in trace["steps"]:
        assert step["response"] in server.replied[_as_asked(step["step"])]
        assert step["response"] == kept.get(step["step"], step["response"])
        assert step["replayed"] == (step["step"] in kept)
    _check_contexts(trace)


def _check_contexts(trace: dict[str, Any]) -> None:
    """Each later step was shown exactly the responses that the trace holds."""
    responses = [step["response"] for step in trace["steps"]]
    for step in (CALLS - 2, CALLS - 1):
        shown = [message["content"] for message in trace["steps"][step]["messages"] if message["role"] == "assistant"]
        assert shown == responses[:step]


def _subtask(last_message: str) -> str:
    return last_message.removeprefix("Q\n\n")


def _as_asked(step: int) -> str:
    return SUBTASKS[step] if step >= WIDTH else f"Q\n\n{SUBTASKS[step]}"


def test_a_killed_run_goes_on_and_makes_no_kept_call_again(home: Path, server: ChatServer) -> None:
    killed_in_the_middle(home, server, requests=17, wait_s=0.01)

    check_resumed(home, server)


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(20))
def test_kill_at_a_random_moment(home: Path, server: ChatServer, moment: int) -> None:
    chance = random.Random(moment)

    killed_in_the_middle(home, server, requests=chance.randint(1, CALLS), wait_s=chance.uniform(0, 0.04))

    if any(status != "finished" for _, status, _ in journal_rows(home)) or len(journal_rows(home)) < CALLS:
        check_resumed(home, server)
    else:
        finished(wfdsl(home, "runs", "resume", "last", "--json"))
        assert len(server.asked) == CALLS


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_goes_on_and_exits_130(home: Path, server: ChatServer, stop: signal.Signals) -> None:
    if signal.getsignal(stop) is signal.SIG_IGN:
        pytest.skip("this signal is ignored, as under nohup")
    server.delay_s = 0.3  # most calls are still to be made when the signal comes, on a busy machine, too
    process = run_forty(home)
    server.wait_for(9)
    process.send_signal(stop)
    _, err = process.communicate(timeout=60)
    time.sleep(0.4)  # what the server was still writing
    server.delay_s = 0.03
    asked, listed = len(server.asked), wfdsl(home, "runs").communicate(timeout=60)[0]

    trace = finished(wfdsl(home, "runs", "resume", "last", "--json"))

    assert process.returncode == 130
    assert f"continue with: wfdsl runs resume {trace['id']}" in err
    assert "Traceback" not in err
    assert "stopped" in listed
    assert asked < CALLS
    assert trace["status"] == "done"
    assert all(step["response"] in server.replied[_as_asked(step["step"])] for step in trace["steps"])
    # A call that was noted and then cancelled before it was sent stays charged as well.
    assert len(server.asked) <= trace["charged"]["calls"] == CALLS + len(trace["lost"])


def test_more_ctrl_c_does_not_take_the_hint_away(home: Path, server: ChatServer) -> None:
    process = run_forty(home)
    server.wait_for(9)
    for _ in range(4):
        process.send_signal(signal.SIGINT)
        time.sleep(0.005)

    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "continue with: wfdsl runs resume " in err
    assert "Traceback" not in err


def test_a_run_under_nohup_outlives_its_terminal(home: Path, server: ChatServer) -> None:
    ours, its = pty.openpty()
    command = f"trap '' HUP; exec {sys.executable} -m wfdsl run forty.txt -q Q --pool pool.toml --max-steps 40"
    environment = {**os.environ, "WFDSL_HOME": str(home), "OPENAI_API_KEY": "unused"}
    with subprocess.Popen(
        ["bash", "-c", command], cwd=home, env=environment, stdin=its, stdout=subprocess.PIPE, stderr=its
    ) as process:
        os.close(its)
        server.wait_for(9)
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=60)

    assert (process.returncode, out) == (0, f"{server.replied['Conclude.'][0]}\n".encode())


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_sigterm_leaves_nothing_running(home: Path, server: ChatServer) -> None:
    process = run_forty(home, own_group=True)
    server.wait_for(9)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    time.sleep(0.1)  # what the server was still writing
    asked = len(server.asked)
    time.sleep(0.2)

    assert len(server.asked) == asked
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.slow
def test_of_two_processes_that_resume_one_run_one_does_the_work(home: Path, server: ChatServer) -> None:
    killed_in_the_middle(home, server, requests=10, wait_s=0.0)
    kept = {step for step, status, _ in journal_rows(home) if status == "finished"}
    asked_before = len(server.asked)

    both = [wfdsl(home, "runs", "resume", "last", "--json", "--set", "run.concurrency=2") for _ in range(2)]
    results = [process.communicate(timeout=120) for process in both]

    codes = sorted(process.returncode for process in both)
    assert codes[0] == 0
    assert codes[1] in (0, 2)  # 0 where the first was over before the second began
    if codes[1] == 2:
        assert any("is being worked on by process" in err for _, err in results)
    assert len(server.asked) - asked_before == CALLS - len(kept)


@pytest.mark.slow
def test_a_server_that_is_killed_and_restarted_mid_run_only_delays_it(home: Path, server: ChatServer) -> None:
    process = run_forty(home)
    server.wait_for(12)
    port = server.port
    server.close()
    time.sleep(1.0)
    second = ChatServer(delay_s=0.0, port=port)
    try:
        trace = finished(process)
    finally:
        second.close()

    assert trace["status"] == "done"
    assert len(second.asked) >= CALLS - 12 - 4
    assert sum(step["retries"] for step in trace["steps"]) >= 1


def test_runs_and_traces_can_be_looked_at_while_and_after_a_run_was_killed(home: Path, server: ChatServer) -> None:
    killed_in_the_middle(home, server, requests=15, wait_s=0.0)

    listed, _ = wfdsl(home, "runs").communicate(timeout=60)
    shown, _ = wfdsl(home, "runs", "show", "last").communicate(timeout=60)

    assert "interrupted" in listed
    assert "the process ended before the run did" in shown
    assert "was in flight when its process ended" in shown
    assert "reply 1" in shown
