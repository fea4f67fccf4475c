"""The folder of an evaluation: its manifest, the file of results, what fitting has cost, and resuming in it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.evaluation.toys import ONE, TWO, evaluation, pool_of, tasks, trial
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.errors import RunInUse, UsageError
from wfdsl.evaluation.manifest import (
    FIT_COSTS,
    FitCost,
    description_of,
    kept_in,
    manifest_of,
    read_fit_costs,
    read_manifest,
    require_same,
)
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.evaluation.trials import Evaluation, read_trials
from wfdsl.workers.entry import Limits, Prices, WorkerEntry
from wfdsl.workers.pool import Pool

POOL, _ = pool_of(["42"], ["42"])


def manifest(what: Evaluation) -> dict[str, Any]:
    return manifest_of(what, task_sources=(), command=["--policy", "one"])


def fitted(cost: FitCost | None) -> Any:
    return SimpleNamespace(fit_cost=cost)


def test_an_evaluation_begins_in_a_folder_of_its_own_on_which_one_process_works(tmp_path: Path) -> None:
    written = manifest(evaluation(POOL))

    with kept_in(tmp_path / "new", {}, written) as keep:
        keep(trial())
        with pytest.raises(RunInUse, match=str(os.getpid())), kept_in(tmp_path / "new", {}):
            pass

    assert read_manifest(tmp_path / "new") == json.loads(json.dumps(written))
    with pytest.raises(UsageError, match="holds an evaluation"), kept_in(tmp_path / "new", {}, written):
        pass


def test_an_evaluation_may_be_resumed_with_other_limits_and_descriptions_of_workers(tmp_path: Path) -> None:
    def pool(**more: Any) -> Pool:
        return Pool([WorkerEntry(name="ann", provider="openai", model="m", **more)])

    now = evaluation(pool(limits=Limits(concurrency=3), retries=0, description="fast"), id="other")

    require_same(manifest(evaluation(pool())), manifest(now), tmp_path)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"policies": {"one": WorkflowPolicy(TWO)}}, "policies"),
        ({"tasks": tasks(4)}, "tasks"),
        ({"tasks": tasks(3, gold="43")}, "tasks"),
        ({"repeats": 2}, "repeats"),
        ({"seed": 1}, "seed"),
        ({"pool": pool_of(["42"], ["42"], prices=Prices(input=2.0, output=2.0))[0]}, "workers"),
        ({"options": {"max_depth": 2}}, "run options"),
    ],
)
def test_what_changes_answers_may_not_change(tmp_path: Path, change: dict[str, Any], word: str) -> None:
    before = evaluation(POOL)

    with pytest.raises(UsageError, match=f"was started with other {word}"):
        require_same(manifest(before), manifest(replace(before, **change)), tmp_path)


def test_policies_are_described_so_that_any_change_shows() -> None:
    class Router:
        def describe(self) -> dict[str, Any]:
            return {"kind": "router", "neighbours": 7}

    one, two, router = map(description_of, (WorkflowPolicy(ONE), WorkflowPolicy(TWO), Router()))  # type: ignore[arg-type]

    assert one["hash"] != two["hash"] == description_of(WorkflowPolicy(TWO))["hash"]
    assert one["workflow"][0]["subtask"] == "Solve."
    assert (router["kind"], router["neighbours"]) == ("router", 7)


def test_a_conductor_is_described_with_its_model_and_prompt() -> None:
    plain, other = (policies_of([name], Pool.load("gym/seven"))[name] for name in ("gym/seven", "gym/seven:pool=3"))
    assert isinstance(plain, Conductor)

    described = description_of(plain)

    assert (described["kind"], described["prompt"]) == ("conductor", plain.settings.prompt.fingerprint)
    assert described["model"]["name"] == plain.entry.name
    assert described["hash"] != description_of(other)["hash"]


@pytest.mark.parametrize("text", [None, "no JSON", "[]", '{"format": "wfdsl-evaluation"}'])
def test_a_folder_without_a_manifest_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)

    with pytest.raises(UsageError, match="manifest"):
        read_manifest(tmp_path)


def test_trials_come_back_as_they_were_kept(tmp_path: Path) -> None:
    kept = [
        trial(task="ä", answer="line\nbreak \u2028 and \ud83d\ude00", rounds=(TWO,), workers={"ann": 1, "bob": 1}),
        trial(task="t2"),  # what is written last of a trial counts
        trial(task="t2", outcome="failed", list_usd=None, latency_s=None, rounds=(), reason="no reply"),
    ]

    before = read_trials(tmp_path)
    with kept_in(tmp_path, {}) as keep:
        for each in kept:
            keep(each)

    found = list(read_trials(tmp_path).values())
    assert (before, found[1:]) == ({}, kept[2:])
    assert (found[0].answer, found[0].rounds) == ("line\nbreak \u2028 and 😀", (TWO,))


@pytest.mark.parametrize("cut_off", [trial(task="t2").to_json()[:100], "{" + "x" * 70_000])
def test_a_line_that_was_cut_off_does_not_count_and_is_taken_away(tmp_path: Path, cut_off: str) -> None:
    (tmp_path / "results.jsonl").write_text(f"{trial(task='t1').to_json()}\n{cut_off}")

    before = read_trials(tmp_path)
    with kept_in(tmp_path, {}) as keep:
        keep(trial(task="t2"))

    assert [key.task for key in before] == ["t1"]
    assert [key.task for key in read_trials(tmp_path)] == ["t1", "t2"]


@pytest.mark.parametrize("line", ["{}", "no JSON", "[1]", '{"policy": "p", "rounds": []}'])
def test_a_whole_line_that_is_no_result_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f"{trial().to_json()}\n{line}\n{trial(task='t2').to_json()}\n")

    with pytest.raises(UsageError, match=r"results\.jsonl:2: this is not a result"):
        read_trials(tmp_path)


def test_costs_of_fitting_are_kept_beside_those_of_earlier_sessions(tmp_path: Path) -> None:
    costs = {"a": FitCost(6, 90, 0.25), "b": FitCost(1, 2, None), "c": FitCost(3, 4, 0.5)}
    with kept_in(tmp_path, {"plain": fitted(None)}):
        pass
    assert not (tmp_path / FIT_COSTS).exists()

    for names in ("ab", "c"):
        with kept_in(tmp_path, {"plain": fitted(None), **{name: fitted(costs[name]) for name in names}}):
            pass

    assert read_fit_costs(tmp_path) == costs


def test_a_conductor_costs_what_its_training_has_cost(tmp_path: Path) -> None:
    with kept_in(tmp_path, policies_of(["gym/seven", "worker:0"], Pool.load("gym/seven"))):
        pass

    [(name, cost)] = read_fit_costs(tmp_path).items()
    assert name == "gym/seven"
    assert cost.calls > 10_000


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": {"cost": 1}}', '{"a": 3}'])
def test_a_damaged_cost_is_an_error_that_names_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / FIT_COSTS).write_text(text)
    (tmp_path / "training_cost.json").write_text(text)
    trained: Any = SimpleNamespace(entry=SimpleNamespace(model=str(tmp_path)))

    with pytest.raises(UsageError, match=FIT_COSTS):
        read_fit_costs(tmp_path)
    with pytest.raises(UsageError, match=r"training_cost\.json"), kept_in(tmp_path, {"mine": trained}):
        pass
