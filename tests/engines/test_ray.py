"""`wfdsl eval --engine ray` on three nodes on this machine: the results of one process, also after faults.

WFDSL_RAY_TASKS sets how many gym questions are compared.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engines.ray_cluster import PYTHON, Cluster, eventually
from tests.rl.engines.conftest import POOL, Provider
from wfdsl.evaluation.trials import Trial, read_trials

GYM_TASKS = os.environ.get("WFDSL_RAY_TASKS", "100")
GYM = ("--policy", "worker:alder", "--policy", "two.wf", "--policy", "vote.wf", "--tasks", "gym/seven")
NAMES = ("one", "many")
TWO = 'step plan by 0: "Plan it."\nstep solve by 1 sees plan: "Solve it now."\n'
VOTE = 'step a by 0: "Solve."\nstep b by 1: "Solve."\nstep c by 2 sees a, b: "Choose."\n'
TASKS, PARALLEL = 40, 2
CALLS = 2 * TASKS
WHAT = ("--policy", "two.wf", "--tasks", "tasks.jsonl", "--pool", "pool.toml", "--parallel", str(PARALLEL))


class Sayer(Provider):
    """Answers by all that it is told, so that questions have answers of their own."""

    @staticmethod
    def asked_of(body: dict[str, Any]) -> str:
        return json.dumps([message["content"] for message in body["messages"]])


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    """A server that counts, with a pool, tasks and a workflow of two steps that asks it."""
    found = Sayer(delay_s=0.1)
    (tmp_path / "pool.toml").write_text(POOL.format(url=found.url))
    (tmp_path / "two.wf").write_text(TWO)
    rows = [{"id": f"t{n}", "question": f"Question {n}?", "gold": "yes", "kind": "text"} for n in range(TASKS)]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    yield found
    found.close()


def begun(cluster: Cluster, *options: str, python: Sequence[str | Path] = (PYTHON,)) -> subprocess.Popen[str]:
    command = [*python, "-m", "wfdsl", "eval", "--no-plots", *options]
    return subprocess.Popen(
        command, cwd=cluster.folder, env=cluster.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def on_ray(cluster: Cluster, *options: str, python: Sequence[str | Path] = (PYTHON,)) -> subprocess.Popen[str]:
    where = ("--engine", "ray", "--address", cluster.address)
    return begun(cluster, *WHAT, "--out", "out", *where, *options, python=python)


def finished(process: subprocess.Popen[str], code: int = 0) -> str:
    _, said = process.communicate(timeout=240)
    assert process.returncode == code, said
    return said


def landed(folder: Path) -> list[Trial]:
    return list(read_trials(folder).values())


def require_each_once(cluster: Cluster, provider: Provider, *, lost: int) -> None:
    """Every trial landed in one line and as one process finds it; at most the `lost` calls in flight were repeated."""
    assert CALLS <= len(provider.asked) <= CALLS + lost
    finished(begun(cluster, *WHAT, "--out", "one", "--set", "run.journal=false"))
    trials, alone = (sorted(map(lasting, landed(cluster.folder / name)), key=repr) for name in ("out", "one"))
    assert trials == alone
    assert Counter(trial.outcome for trial in trials).keys() == {"right", "wrong"}
    assert len((cluster.folder / "out/results.jsonl").read_text().splitlines()) == len(trials) == TASKS


def lasting(trial: Trial) -> Trial:
    """What does not depend on the run's name, on the time that it took and on what the journal has."""
    return replace(trial, run_id="", latency_s=None, paid_usd=None, replayed=0)


def test_the_results_are_those_of_one_process(cluster: Cluster) -> None:
    folder = cluster.folder
    (folder / "two.wf").write_text(TWO)
    (folder / "vote.wf").write_text(VOTE)
    finished(
        begun(cluster, *GYM, "--pool", "gym/seven", "--limit", GYM_TASKS, "--set", "run.journal=false", "--out", "one")
    )
    (folder / "many").mkdir()
    shutil.copy(folder / "one/manifest.json", folder / "many/manifest.json")  # the same id, and so the same names

    finished(begun(cluster, "--resume", "many", "--engine", "ray", "--address", cluster.address))

    one, many = (sorted((replace(each, latency_s=None) for each in landed(folder / name)), key=repr) for name in NAMES)
    assert len(one) == 3 * int(GYM_TASKS)
    assert many == one


def test_trials_of_a_node_that_is_killed_are_placed_again(cluster: Cluster, provider: Provider) -> None:
    driver = on_ray(cluster)
    provider.wait_for(12)
    cluster.change("kill")
    finished(driver)
    cluster.change("add")

    require_each_once(cluster, provider, lost=PARALLEL)


def test_a_driver_that_is_killed_is_resumed_and_repeats_nothing_that_landed(
    cluster: Cluster, provider: Provider
) -> None:
    driver = on_ray(cluster)
    eventually(lambda: (cluster.folder / "out/results.jsonl").exists() and landed(cluster.folder / "out"))
    driver.kill()
    driver.communicate()
    before = (cluster.folder / "out/results.jsonl").read_text().splitlines(keepends=True)

    finished(begun(cluster, "--resume", "out"))

    after = (cluster.folder / "out/results.jsonl").read_text().splitlines(keepends=True)
    whole = [line for line in before if line.endswith("\n")]
    assert after[: len(whole)] == whole
    require_each_once(cluster, provider, lost=3 * PARALLEL)


def test_a_process_that_is_only_slow_delays_its_own_trials_and_repeats_none(
    cluster: Cluster, provider: Provider
) -> None:
    driver = on_ray(cluster)
    provider.wait_for(12)
    slow = eventually(cluster.processes)[0]
    os.kill(slow, signal.SIGSTOP)
    try:
        eventually(lambda: len(landed(cluster.folder / "out")) >= TASKS // 2)
        assert driver.poll() is None
    finally:
        os.kill(slow, signal.SIGCONT)

    finished(driver)
    require_each_once(cluster, provider, lost=0)


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("unshare") is None, reason="needs root, to show it another file")
def test_a_node_that_has_another_file_is_refused_before_any_call(cluster: Cluster, provider: Provider) -> None:
    (cluster.folder / "other.wf").write_text(TWO.replace("Plan it", "Think of it"))
    shown = ("unshare", "--mount", "sh", "-c", 'mount --bind other.wf two.wf && exec "$@"', "sh", PYTHON)

    said = finished(on_ray(cluster, python=shown), 2)

    assert "has other" in said
    assert not provider.asked
