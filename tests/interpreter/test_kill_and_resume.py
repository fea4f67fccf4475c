"""A run that was killed is resumed: real processes, a real server that counts, and `kill -9`."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.forked import Program
from tests.interpreter.chat_server import ChatServer
from tests.interpreter.stopping import broken_by_a_cancel, broken_by_a_kill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WIDTH = 38
CALLS = WIDTH + 2
SUBTASKS = [f"Attempt {index}." for index in range(WIDTH)] + ["Compare.", "Conclude."]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(delay_s=0.03) as chat:
        yield chat


@pytest.fixture
def home(tmp_path: Path, server: ChatServer) -> Path:
    """A folder with a workflow of 40 calls, a pool, and room for the journal."""
    access: list[Any] = [[] for _ in range(WIDTH)] + [list(range(WIDTH)), "all"]
    lists = f"model_id = {[0] * CALLS}\nsubtasks = {json.dumps(SUBTASKS)}\naccess_list = {json.dumps(access)}"
    (tmp_path / "forty.txt").write_text(lists)
    more = "max_tokens = 100\nretries = 8\nprices = { input = 1.0, output = 1.0 }"
    (tmp_path / "pool.toml").write_text(server.pool_file("chat", more=more))
    return tmp_path


def wfdsl(home: Path, *arguments: str, own_group: bool = False) -> Program:
    environment = {**os.environ, "WFDSL_HOME": str(home), "OPENAI_API_KEY": "unused"}
    return Program("-m", "wfdsl", *arguments, folder=home, env=environment, own_group=own_group)


def run_forty(home: Path, *, own_group: bool = False) -> Program:
    limits = ("--max-steps", "40", "--set", "run.concurrency=4")
    return wfdsl(home, "run", "forty.txt", "-q", "Q", "--pool", "pool.toml", *limits, "--json", own_group=own_group)


def finished(process: Program) -> dict[str, Any]:
    assert process.wait(120) == 0, process.stderr
    trace: dict[str, Any] = json.loads(process.stdout)
    return trace


def _as_asked(step: int) -> str:
    return SUBTASKS[step] if step >= WIDTH else f"Q\n\n{SUBTASKS[step]}"


@pytest.mark.parametrize("broken_by", [broken_by_a_kill, broken_by_a_cancel])
@pytest.mark.parametrize("moment", range(8))
def test_a_run_that_is_killed_or_cancelled_at_any_moment_keeps_its_promises(
    tmp_path: Path, moment: int, broken_by: Callable[[int, Path], list[str]]
) -> None:
    assert broken_by(moment, tmp_path / "journal.db") == []


@pytest.mark.parametrize(
    ("stop", "times"), [(signal.SIGINT, 1), (signal.SIGINT, 4), (signal.SIGTERM, 1)], ids=["^C", "more ^C", "SIGTERM"]
)
def test_an_interrupted_run_leaves_nothing_running_and_is_continued(
    home: Path, server: ChatServer, stop: signal.Signals, times: int
) -> None:
    if signal.getsignal(stop) is signal.SIG_IGN:
        pytest.skip("this signal is ignored, as under nohup")
    server.delay_s = 0.3  # most calls are still to be made when the signal comes, on a busy machine, too
    process = run_forty(home, own_group=True)
    server.wait_for(9)
    for _ in range(times):
        process.send_signal(stop)
        time.sleep(0.005)
    process.wait(60)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    time.sleep(0.4)  # what the server was still writing
    server.delay_s, asked = 0.03, len(server.asked)

    trace = finished(wfdsl(home, "runs", "resume", "last", "--json"))

    assert process.returncode == 130
    assert f"continue with: wfdsl runs resume {trace['id']}" in process.stderr
    assert "Traceback" not in process.stderr
    assert asked < CALLS
    assert trace["status"] == "done"
    assert all(step["response"] in server.replied[_as_asked(step["step"])] for step in trace["steps"])
    # A call that was noted and then cancelled before it was sent stays charged as well.
    assert len(server.asked) <= trace["charged"]["calls"] == CALLS + len(trace["lost"])


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


@pytest.mark.slow
def test_a_server_that_is_killed_and_restarted_mid_run_only_delays_it(home: Path, server: ChatServer) -> None:
    process = run_forty(home)
    server.wait_for(12)
    port = server.port
    server.close()
    time.sleep(1.0)
    with ChatServer(delay_s=0.0, port=port) as second:
        trace = finished(process)

    assert trace["status"] == "done"
    assert len(second.asked) >= CALLS - 12 - 4
    assert sum(step["retries"] for step in trace["steps"]) >= 1
