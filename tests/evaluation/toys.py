"""Small tasks, policies and results for tests of evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wfdsl.cli.main import main as wfdsl
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.evaluation.evaluate import evaluate
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.evaluation.trials import Evaluation, Trial
from wfdsl.grading.verdict import Verdict
from wfdsl.language.workflow import Step, Workflow
from wfdsl.tasks.task import Task
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl.workers.scripted import Script, ScriptedWorker

ONE = Workflow((Step(0, "Solve."),))
TWO = Workflow((Step(0, "Solve."), Step(1, "Check.", "all")))


def wfdsl_eval(words: Sequence[str]) -> int:
    """The exit code of `wfdsl eval`."""
    return wfdsl(["eval", *words])


def policy_of(name: str, pool: Pool) -> Policy:
    [policy] = policies_of([name], pool).values()
    return policy


def trial(policy: str = "p", task: str = "t", outcome: Any = "right", **more: Any) -> Trial:
    given: dict[str, Any] = {"task_hash": f"hash of {task}", "source": "toy", "domain": "math", "repeat": 0}
    given |= {"workers": {"ann": 1}, "rounds": (ONE,), "calls": 1, "list_usd": 0.5, "paid_usd": 0.5, "latency_s": 2.0}
    return Trial(policy=policy, task=task, outcome=outcome, **{**given, **more})


def tasks(count: int, **more: Any) -> list[Task]:
    given = {"gold": "42", "kind": "text", "source": "toy", **more}
    return [Task(id=f"t{number}", question=f"Question {number}?", **given) for number in range(count)]


def pool_of(*scripts: Script, delay_s: float = 0.0, prices: Prices | None = None) -> tuple[Pool, list[ScriptedWorker]]:
    workers = [ScriptedWorker(script, repeat=True, delay_s=delay_s) for script in scripts]
    names = ["ann", "bob", "cy"][: len(workers)]
    prices = prices or Prices(input=1.0, output=1.0)
    entries = [WorkerEntry(name=name, provider="scripted", prices=prices, max_tokens=10, retries=0) for name in names]
    return Pool.from_workers(list(zip(entries, workers, strict=True)), name="toys"), workers


def evaluation(pool: Pool, *, count: int = 3, **more: Any) -> Evaluation:
    given: dict[str, Any] = {"policies": {"one": WorkflowPolicy(ONE)}, "tasks": tasks(count), "id": "e"}
    return Evaluation(pool=pool, **{**given, **more})


async def grade_42(task: Task, text: str) -> Verdict:
    return Verdict("right" if text == task.gold else "wrong", text, "compared")


async def trials_of(what: Evaluation, **options: Any) -> tuple[list[Trial], str]:
    found: list[Trial] = []
    stopped = await evaluate(what, keep=found.append, **{"grader": grade_42, **options})
    return found, stopped
