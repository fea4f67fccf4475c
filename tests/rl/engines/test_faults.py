"""Processes that are killed, disks that are full, clocks that jump: every call once, within the budget, same results.

What is paid is counted at the provider. The longer ones run with WFDSL_FAULTS=1, which `make faults` sets.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.forked import Program
from wfdsl.interpreter.budget import BudgetUsage
from wfdsl.interpreter.journal_reading import run_of, summaries
from wfdsl_rl.engines.client import RewardClient

from .conftest import CALL_USD, FLOW, Provider, Serve, completion, get, post, verdict

pytestmark = pytest.mark.slow
long = pytest.mark.skipif(not os.environ.get("WFDSL_FAULTS"), reason="takes long: make faults")
needs_prlimit = pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit, which fills the disk")


def batch(count: int, steps: int = 2) -> list[dict[str, Any]]:
    """Samples whose steps all have subtasks of their own."""
    return [
        {
            "task": "t0",
            "sample_id": f"s{number}",
            "completion": completion(*(f"Do {number}.{step}" for step in range(steps))),
        }
        for number in range(count)
    ]


def scores(samples: list[dict[str, Any]], steps: int = 2) -> list[float]:
    """What the samples of `batch` are worth."""
    return [1.0 if verdict(f"Do {number}.{steps - 1}") == "yes" else 0.5 for number in range(len(samples))]


def asked(provider: Provider) -> Counter[str]:
    """How often each subtask was asked."""
    return Counter(text.rpartition("\n")[2] for text in provider.asked)


def charged(journal: Path) -> BudgetUsage:
    """What all runs of a journal are charged."""
    found = BudgetUsage()
    for each in summaries(journal):
        found = found.plus(each.charged)
    return found


def in_background(work: Callable[[], Any]) -> Future[Any]:
    threads = ThreadPoolExecutor(1)
    found = threads.submit(work)
    threads.shutdown(wait=False)
    return found


def test_a_server_killed_in_mid_batch_is_restarted_and_no_reply_is_paid_twice(
    serve: Serve, provider: Provider, tmp_path: Path
) -> None:
    provider.delay_s = 0.1
    samples, first = batch(10), serve("--parallel", "4")
    client = RewardClient(first.url, patience_s=60.0)
    results = in_background(lambda: client.score_sync(samples))
    provider.wait_for(9)
    first.stop(signal.SIGKILL)
    answered = sum(map(len, provider.replied.values()))
    serve("--parallel", "4", port=first.port)

    assert [each["score"] for each in results.result(60)] == scores(samples)
    client.close()
    again = asked(provider)
    assert len(again) == 20
    lost = [call for run in summaries(tmp_path / "journal.db") for call in run_of(tmp_path / "journal.db", run.id).lost]
    assert sum(again.values()) - 20 <= len(lost) <= 4
    assert all(call.usd > CALL_USD for call in lost)
    assert answered <= charged(tmp_path / "journal.db").calls == 20 + len(lost)


@needs_prlimit
def test_a_full_disk_is_an_error_that_passes_and_no_kept_reply_is_paid_twice(
    serve: Serve, provider: Provider, tmp_path: Path
) -> None:
    server = serve("--parallel", "2", prefix=("prlimit", "--fsize=300000:unlimited"))
    samples = batch(60)
    client = server.client(patience_s=60.0)

    refused = post(f"{server.url}/v1/score", json={"samples": samples})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "journal_failed")
    paid = sum(map(len, provider.replied.values()))
    assert 0 < paid < 120
    assert get(f"{server.url}/health").json() == {"status": "ok"}

    subprocess.run(["prlimit", f"--pid={server.process.pid}", "--fsize=unlimited:unlimited"], check=True)

    assert [each["score"] for each in client.score_sync(samples)] == scores(samples)
    again = asked(provider)
    assert len(again) == 120
    assert sum(again.values()) - 120 <= 2  # those whose replies could not be kept


def evaluation(folder: Path, tasks: int, *options: str) -> Program:
    """A driver: a process that evaluates the workflow file on tasks, or resumes."""
    (folder / "flow.wf").write_text(FLOW)
    lines = [json.dumps({"id": f"t{n}", "question": f"Q{n}?", "gold": "yes", "kind": "text"}) for n in range(tasks)]
    (folder / "many.jsonl").write_text("\n".join(lines))
    env = {**os.environ, "WFDSL_HOME": str(folder / "node"), "OPENAI_API_KEY": "none"}
    command = ["-m", "wfdsl", "eval", "--no-plots", "--quiet"]
    if "--resume" not in options:
        command += ["--policy", "flow.wf", "--tasks", "many.jsonl", "--pool", "pool.toml"]
    return Program(*command, *options, folder=folder, env=env)


def outcomes(folder: Path) -> list[str]:
    """The outcomes of an evaluation's trials."""
    return [json.loads(line)["outcome"] for line in (folder / "results.jsonl").read_text().splitlines()]


@long
def test_two_drivers_of_one_evaluation_do_its_work_once(provider: Provider, tmp_path: Path) -> None:
    provider.going.clear()
    driver = evaluation(tmp_path, 20, "--out", "e", "--parallel", "2")
    provider.wait_for(2)
    other = evaluation(tmp_path, 20, "--resume", "e")
    other.wait()
    provider.going.set()
    driver.wait()

    assert (other.returncode, "is being worked on by process" in other.stderr) == (2, True)
    assert driver.returncode == 0
    assert len(provider.asked) == 40
    assert outcomes(tmp_path / "e") == ["right"] * 20


@long
def test_a_clock_that_jumps_ends_no_request(serve: Serve, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import time, pathlib\nclock = time.time\nfile = pathlib.Path(__file__).with_name('shift')\n"
        "time.time = lambda: clock() + float(file.read_text())\n"
    )
    shift = tmp_path / "shift"
    shift.write_text("0")
    server = serve(prefix=("env", f"PYTHONPATH={tmp_path}"))
    provider.delay_s = 0.5
    results = in_background(lambda: server.client().score_sync(batch(6)))
    for jump in (86_400, -86_400):
        (tmp_path / "next").write_text(str(jump))
        (tmp_path / "next").replace(shift)
        time.sleep(1.0)

    assert [each["score"] for each in results.result(60)] == scores(batch(6))
    assert set(asked(provider).values()) == {1}
