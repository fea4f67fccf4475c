"""Evaluating: every trial once, what becomes of it, and what stops an evaluation."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from pydantic import TypeAdapter

from tests.evaluation.toys import ONE, TWO, evaluation, pool_of, tasks, trials_of
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import MajorityVote
from wfdsl.evaluation.evaluate import estimate_policies, estimate_text, final_part
from wfdsl.evaluation.statistics import accuracy_of, difference_of
from wfdsl.evaluation.trials import Trial
from wfdsl.grading.verdict import Verdict
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.journal import Journal
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Reply, WorkerFailure
from wfdsl.tasks.task import Task
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl.workers.scripted import ScriptedWorker

BOTH = {"one": WorkflowPolicy(ONE), "two": WorkflowPolicy(TWO)}


async def test_every_policy_meets_every_task_as_often_as_asked() -> None:
    pool, _ = pool_of(["42"], ["7"])
    what = evaluation(pool, policies=BOTH, repeats=2)

    trials, stopped = await trials_of(what)

    assert sorted(trial.key for trial in trials) == sorted(what.trials())
    assert len(trials) == 2 * 3 * 2
    assert {(trial.policy, trial.outcome) for trial in trials} == {("one", "right"), ("two", "wrong")}
    assert stopped == ""


async def test_a_cell_says_what_happened() -> None:
    pool, _ = pool_of(["42"], ["7 it is"])

    (trial,), _ = await trials_of(evaluation(pool, policies={"two": WorkflowPolicy(TWO)}, count=1))

    assert (trial.answer, trial.extracted, trial.reason) == ("7 it is", "7 it is", "compared")
    assert (trial.calls, trial.steps, trial.topology, trial.workers) == (2, 2, "chain", {"ann": 1, "bob": 1})
    assert (trial.output_tokens, trial.replayed, trial.rounds) == (4, 0, (TWO,))
    assert trial.list_usd == pytest.approx(trial.tokens / 1_000_000)
    assert trial.latency_s is not None


async def test_a_failed_run_is_a_result_with_its_cost() -> None:
    def fail(call: Call) -> WorkerFailure:
        return WorkerFailure("the server is gone", retryable=False)

    pool, _ = pool_of(["42"], fail)

    trials, stopped = await trials_of(evaluation(pool, policies=BOTH, count=1))

    failed = next(trial for trial in trials if trial.policy == "two")
    assert (failed.outcome, failed.answer, failed.calls) == ("failed", None, 1)
    assert failed.reason.endswith("the server is gone")
    assert failed.tokens > 0
    assert stopped == ""


@pytest.mark.parametrize("reply", ["", " ", Reply("", finish="filtered"), Reply("", finish="out_of_tokens")])
async def test_a_question_without_an_answer_is_answered_wrongly(reply: Any) -> None:
    def silent_on_all_but_one(call: Call) -> Any:
        return "42" if "Question 0" in call.messages[0]["content"] else reply

    pool, _ = pool_of(silent_on_all_but_one, lambda call: "42")
    policies = {name: WorkflowPolicy(Workflow((Step(at, "Solve."),))) for at, name in enumerate(("silent", "honest"))}

    trials, _ = await trials_of(evaluation(pool, policies=policies, count=4))

    own = {name: [trial for trial in trials if trial.policy == name] for name in policies}
    silent, difference = accuracy_of(own["silent"]), difference_of(own["silent"], own["honest"])
    assert (silent.value, silent.wrong, silent.failed) == (0.25, 3, 0)
    assert difference is not None
    assert (difference.tasks, difference.value) == (4, -0.75)


async def test_a_conductor_that_writes_no_valid_workflow_has_answered_wrongly() -> None:
    boss = Conductor(ScriptedWorker(["no lists"], repeat=True), prompt="tiny", reasks=0, max_rounds=0)
    pool, _ = pool_of(lambda call: "42")

    [trial], _ = await trials_of(evaluation(pool, policies={"boss": boss}, count=1))

    assert (trial.outcome, trial.answer, trial.completions) == ("wrong", None, 1)


async def test_the_same_answer_to_a_task_is_judged_once_and_may_be_neither_right_nor_wrong() -> None:
    judged: list[tuple[str, str]] = []

    async def shrug(task: Task, text: str) -> Verdict:
        judged.append((task.id, text))
        await asyncio.sleep(0)
        return Verdict("unjudged", None, "there is no sandbox")

    pool, _ = pool_of(["42"], ["42"])

    trials, _ = await trials_of(evaluation(pool, policies=BOTH), grader=shrug, concurrency=6)

    assert sorted(judged) == [("t0", "42"), ("t1", "42"), ("t2", "42")]
    assert [(trial.outcome, trial.reason) for trial in trials] == [("unjudged", "there is no sandbox")] * 6


@pytest.mark.parametrize(
    ("task", "one", "other"),
    [
        ({"kind": "math"}, "First thought.\nThe answer is \\boxed{42}.", "So \\boxed{42}"),
        ({"kind": "text"}, "Hm. Answer: 42", "I am sure.\nAnswer: 42"),
        ({"kind": "custom", "grader": "module:function"}, "Answer: 42. ", "Answer: 42. "),
    ],
)
def test_an_answer_is_the_same_if_its_final_part_is(task: dict[str, Any], one: str, other: str) -> None:
    [made] = tasks(1, **task)

    assert final_part(made, one) == final_part(made, other) is not None
    assert (final_part(made, f"So. {one}") == final_part(made, one)) == (made.kind != "custom")


async def test_what_the_journal_holds_is_not_asked_again(tmp_path: Path) -> None:
    pool, workers = pool_of(["42"], ["42"])
    what = evaluation(pool, policies=BOTH)

    with Journal(tmp_path / "journal.db") as journal:
        first, _ = await trials_of(what, journal=journal)
        calls = [len(worker.calls) for worker in workers]
        again, _ = await trials_of(what, journal=journal)

        replayed = [len(worker.calls) for worker in workers]
        await trials_of(replace(what, id="another"), journal=journal)

    assert replayed == calls
    assert sorted(map(_lasting, again)) == sorted(map(_lasting, first))
    assert all(trial.replayed == trial.calls and trial.latency_s is None for trial in again)
    assert [len(worker.calls) for worker in workers] == [2 * count for count in calls]


async def test_no_more_cells_at_a_time_than_allowed() -> None:
    at_work, most = 0, 0

    async def slowly(call: Call) -> str:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.001)
        at_work -= 1
        return "42"

    pool, _ = pool_of(slowly)

    await trials_of(evaluation(pool, count=12), concurrency=3)

    assert most == 3


async def test_policies_share_the_seed_of_a_task_and_repeats_do_not() -> None:
    pool, (ann,) = pool_of(["42"])
    policies = {"a": WorkflowPolicy(ONE), "b": WorkflowPolicy(ONE)}

    await trials_of(evaluation(pool, policies=policies, repeats=2, count=2))

    seeds = Counter((call.messages[0]["content"], call.settings["seed"]) for call in ann.calls)
    assert list(seeds.values()) == [2] * 4
    assert (len({asked for asked, _ in seeds}), len({seed for _, seed in seeds})) == (2, 4)
    await trials_of(evaluation(pool, seed=None))
    assert [call.settings.get("seed") for call in ann.calls[8:]] == [None] * 3


async def test_what_cannot_be_evaluated_is_an_error_of_usage() -> None:
    pool, [ann] = pool_of(["42"])
    pair = Pool.from_workers([(pool.entry(0), ann), (WorkerEntry(name="bob", provider="function", retries=0), ann)])
    far = {"far": WorkflowPolicy(Workflow((Step(5, "Solve."),)))}

    with pytest.raises(UsageError, match="asks worker 5"):
        await trials_of(evaluation(pool, policies=far))
    with pytest.raises(UsageError, match="toy/t0"):
        await trials_of(evaluation(pool, tasks=tasks(1) * 2))
    with pytest.raises(UsageError, match=r"worker 1 \(bob\) has no known price"):
        await trials_of(evaluation(pair, policies=BOTH), budget=Budget(usd=1.0))
    assert ann.calls == []


async def test_a_mistake_of_a_judge_ends_the_evaluation_with_nothing_left_running() -> None:
    async def wrong(task: Task, text: str) -> Verdict:
        raise UsageError("there is no grader `nowhere:grade`")

    pool, [worker] = pool_of(["42"], delay_s=0.0)
    absent = [task.model_copy(update={"kind": "custom", "grader": "nowhere:grade"}) for task in tasks(20)]

    with pytest.raises(UsageError, match="nowhere"):  # before anything is asked
        await trials_of(evaluation(pool, tasks=absent), grader=None)
    assert not worker.calls
    with pytest.raises(UsageError, match="nowhere:grade"):
        await trials_of(evaluation(pool, count=20), grader=wrong)

    assert len(asyncio.all_tasks()) == 1


async def test_a_conductors_rounds_and_completions_are_counted_apart() -> None:
    first = 'model_id = [0, 1]\nsubtasks = ["Solve.", "Check."]\naccess_list = [[], "all"]'
    second = 'model_id = [1]\nsubtasks = ["Solve again."]\naccess_list = [[]]'
    entry = WorkerEntry(name="conductor", provider="function", prices=Prices(input=1.0, output=1.0), retries=0)
    conductor = Conductor(ScriptedWorker(["no lists", first, second]), entry=entry)
    pool, _ = pool_of(["7"], ["8", "42"])

    (trial,), _ = await trials_of(evaluation(pool, policies={"conductor": conductor}, count=1))

    assert (trial.outcome, trial.answer) == ("right", "42")
    assert (trial.calls, trial.completions, trial.steps) == (3, 3, 3)
    assert trial.workers == {"ann": 1, "bob": 2}
    assert [len(workflow) for workflow in trial.rounds] == [2, 1]
    assert trial.topology == "chain"
    assert trial.list_usd is not None
    assert trial.list_usd > 0


async def test_a_vote_counts_the_attempts_and_not_its_own_counting() -> None:
    pool, _ = pool_of(["42"])

    (trial,), _ = await trials_of(evaluation(pool, policies={"vote": MajorityVote(n=3)}, count=1))

    assert (trial.calls, trial.steps, trial.workers) == (3, 3, {"ann": 3})
    assert TypeAdapter(Trial).validate_json(trial.to_json()) == trial


def _lasting(trial: Trial) -> tuple[Any, ...]:
    return trial.key, trial.outcome, trial.answer, trial.tokens, trial.paid_usd


async def test_workers_are_asked_for_the_form_of_the_answer() -> None:
    pool, (ann,) = pool_of(["42"])

    await trials_of(evaluation(pool, tasks=tasks(1, answer_format="End with the colour.")))

    (call,) = ann.calls
    assert "End with the colour." in str(call.messages)


@pytest.mark.parametrize(("said", "outcome"), [("Right.", "right"), ("wrong", "wrong"), ("I cannot say", "wrong")])
async def test_a_judge_reads_only_replies_that_state_no_answer(said: str, outcome: str) -> None:
    seen: list[str] = []

    def script(call: Call) -> str:
        text = str(call.messages)
        if "Reference answer" in text:
            seen.append(text)
            return said
        return "It could be 1 or perhaps 2." if "zero" in text else "Answer: 7"

    pool, _ = pool_of(script)
    asked = [Task(id=name, question=f"What is {name}?", gold="1") for name in ("zero", "one")]

    judged, _ = await trials_of(evaluation(pool, tasks=asked, judge=0), grader=None)
    without, _ = await trials_of(evaluation(pool, tasks=asked), grader=None)

    assert {trial.task: trial.outcome for trial in judged} == {"zero": outcome, "one": "wrong"}
    assert [trial.outcome for trial in without] == ["wrong", "wrong"]
    assert len(seen) == 1
    assert estimate_policies(evaluation(pool, tasks=asked, judge=0))[-1].calls == 2
    stopped = await trials_of(evaluation(pool, tasks=asked[:1], judge=0), grader=None, budget=Budget(calls=1))
    assert (stopped[0], bool(stopped[1])) == ([], True)


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


async def test_nodes_share_the_trials_and_keep_clients_open_until_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """With actors in this process; `tests/engines/test_ray.py` has Ray's own."""

    def actor(node: Any) -> Any:
        return SimpleNamespace(run=SimpleNamespace(remote=node.run))

    ray = MagicMock(nodes=lambda: [{"Alive": True, "Resources": {"CPU": 1.0}}] * 2)
    ray.remote.return_value = lambda made: SimpleNamespace(remote=lambda *args, **more: actor(made(*args, **more)))
    ray.exceptions.RayError = OSError
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
    engine = import_module("wfdsl.evaluation.ray_engine")
    monkeypatch.delitem(sys.modules, "wfdsl.evaluation.ray_engine")
    users, found = [0], list[Trial]()

    class Held(WorkflowPolicy):
        @asynccontextmanager
        async def open(self) -> AsyncIterator[None]:
            users.append(users[-1] + 1)
            try:
                yield
            finally:
                users.append(users[-1] - 1)

    what = evaluation(pool_of(["42"])[0], policies={"held": Held(ONE)}, count=9)

    await engine.evaluate_on_ray(what, lambda: what, keep=found.append, parallel=2, journal=False)

    assert sorted(trial.key for trial in found) == sorted(what.trials())
    assert {trial.outcome for trial in found} == {"right"}
    assert 0 not in users[1:]
