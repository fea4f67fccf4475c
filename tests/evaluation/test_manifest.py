"""Manifests: what they hold, and what a resumed evaluation may not change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.toys import ONE, TWO, evaluation, pool_of, tasks
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.evaluation.estimate import estimate_policies, estimate_text
from wfdsl.evaluation.manifest import (
    begin_folder,
    description_of,
    manifest_of,
    read_manifest,
    require_same,
)
from wfdsl.evaluation.trials import Evaluation
from wfdsl.language.workflow import Workflow
from wfdsl.workers.entry import Limits, Prices, WorkerEntry
from wfdsl.workers.pool import Pool


def manifest(what: Evaluation, *sources: str) -> dict[str, Any]:
    return manifest_of(what, task_sources=sources, command=["--policy", "one"])


def test_a_manifest_comes_back_as_it_was_written(tmp_path: Path) -> None:
    pool, _ = pool_of(["42"])
    written = manifest(evaluation(pool))

    begin_folder(tmp_path, written)

    assert read_manifest(tmp_path) == json.loads(json.dumps(written))


def test_the_same_evaluation_may_go_on(tmp_path: Path) -> None:
    pool, _ = pool_of(["42"])

    require_same(manifest(evaluation(pool)), manifest(evaluation(pool, id="other")), tmp_path)


def test_limits_and_descriptions_of_workers_may_change(tmp_path: Path) -> None:
    def pool(**more: Any) -> Pool:
        return Pool([WorkerEntry(name="ann", provider="openai", model="m", **more)])

    before, now = manifest(evaluation(pool())), manifest(evaluation(pool(limits=Limits(concurrency=3), retries=0)))

    require_same(before, now, tmp_path)


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
    pool, _ = pool_of(["42"], ["42"])
    before = evaluation(pool)

    with pytest.raises(UsageError, match=f"was started with other {word}"):
        require_same(manifest(before), manifest(replace(before, **change)), tmp_path)


def test_policies_are_described_so_that_any_change_shows() -> None:
    one, two = description_of(WorkflowPolicy(ONE)), description_of(WorkflowPolicy(TWO))

    assert one["hash"] != two["hash"] == description_of(WorkflowPolicy(TWO))["hash"]
    assert one["workflow"][0]["subtask"] == "Solve."


def test_a_policy_may_describe_itself() -> None:
    class Router:
        def describe(self) -> dict[str, Any]:
            return {"kind": "router", "neighbours": 7}

    described = description_of(Router())  # type: ignore[arg-type]  # only its description is asked for

    assert (described["kind"], described["neighbours"]) == ("router", 7)


def test_a_policy_may_say_what_is_the_dearest_that_it_may_run() -> None:
    class Router:
        def dearest(self, pool: Pool) -> list[Workflow]:
            return [ONE, TWO]

    pool, _ = pool_of(["42"], ["42"])
    policies = {"router": Router(), "vote": object(), "two": WorkflowPolicy(TWO)}

    router, vote, two = estimate_policies(evaluation(pool, policies=policies, repeats=5))

    assert (router.trials, router.calls, router.usd_at_most) == (15, 30, two.usd_at_most)
    assert (vote.trials, vote.calls, vote.usd_at_most) == (15, None, None)
    assert two.calls == 30
    assert two.usd_at_most is not None
    assert "45 trials, 60 calls" in estimate_text([router, vote, two])


@pytest.mark.parametrize("text", [None, "no JSON", "[]", '{"format": "wfdsl-evaluation"}'])
def test_a_folder_without_a_manifest_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)

    with pytest.raises(UsageError, match="manifest"):
        read_manifest(tmp_path)
