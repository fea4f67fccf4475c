"""What an evaluation would ask and could cost at most, before anything is asked.

A policy with a fixed workflow (an attribute `workflow`) and a Conductor can be estimated. Others may say how many calls
of workers they make at most, by a method `most_calls(pool) -> int | None`, what a question costs at most, by
`most_usd(question, pool) -> float | None`, and how many calls to fit before the first question, by
`fit_calls(pool) -> int`. What is not known is reported as not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.estimate import estimate_solve
from wfdsl.conductor.policy import Policy
from wfdsl.evaluation.judge import LONGEST_TAIL, judged_text, judging
from wfdsl.evaluation.trials import Evaluation
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.worker_profile import estimate
from wfdsl.language.workflow import Workflow
from wfdsl.render.status import dollars


@dataclass(frozen=True, slots=True)
class PolicyEstimate:
    """What is known beforehand of one policy, over all its trials."""

    policy: str
    trials: int
    calls: int | None
    """Calls of workers, and completions of a Conductor, at most; None: not known."""
    usd: float | None
    """US dollars at most, if each call succeeds at once; None: not known."""
    fit_calls: int = 0
    """Calls before the first question; fewer if the journal, or another policy that is fitted on the same tasks, has
    some of them."""

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain values."""
        return {
            "policy": self.policy,
            "trials": self.trials,
            "calls": self.calls,
            "fit_calls": self.fit_calls,
            "usd_at_most": self.usd,
        }


def estimate_policies(evaluation: Evaluation) -> list[PolicyEstimate]:
    """What is known of each policy.

    Raises:
        UsageError: a fixed workflow cannot run on the pool.
    """
    found = [_of_policy(name, policy, evaluation) for name, policy in evaluation.policies.items()]
    return found if evaluation.judge is None else [*found, _of_judge(evaluation.judge, evaluation)]


def estimate_text(found: list[PolicyEstimate]) -> str:
    """The estimates as lines for people."""
    lines = [f"{each.policy}: {_takes(each.trials, each.calls, each.usd, fit_calls=each.fit_calls)}" for each in found]
    if len(found) > 1:
        lines.append(_of_all(found))
    return "\n".join([*lines, "nothing was asked"])


def _of_all(found: list[PolicyEstimate]) -> str:
    known = [each.calls for each in found if each.calls is not None]
    prices = [each.usd for each in found if each.usd is not None]
    trials = sum(each.trials for each in found)
    whole = f"all: {_takes(trials, sum(known) if known else None, sum(prices) if prices else None)}"
    unknown = sum(each.calls is None or each.usd is None for each in found)
    if not unknown or not (known or prices):
        return whole
    return f"{whole}, and what is not known of {unknown} {'policy' if unknown == 1 else 'policies'}"


def _takes(trials: int, calls: int | None, usd: float | None, *, fit_calls: int = 0) -> str:
    return f"{_counted(trials, 'trial')}, {_calls(calls)}{_learning(fit_calls)}, {_usd(usd)}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _of_policy(name: str, policy: Policy, evaluation: Evaluation) -> PolicyEstimate:
    trials = len(evaluation.tasks) * evaluation.repeats
    if isinstance(policy, Conductor):
        of_each = [estimate_solve(policy, task.question, evaluation.pool) for task in evaluation.tasks]
        known = [each.usd for each in of_each if each.usd is not None]
        usd_of_all = sum(known) * evaluation.repeats if len(known) == len(of_each) else None
        return PolicyEstimate(name, trials, sum(each.calls for each in of_each) * evaluation.repeats, usd_of_all)
    workflow: Workflow | None = getattr(policy, "workflow", None)
    if workflow is None:
        most = getattr(policy, "most_calls", None)
        calls = None if most is None else most(evaluation.pool)
        to_fit = getattr(policy, "fit_calls", None)
        fit_calls = 0 if to_fit is None else to_fit(evaluation.pool)
        most_usd = getattr(policy, "most_usd", None)
        costs = [] if most_usd is None else [most_usd(task.question, evaluation.pool) for task in evaluation.tasks]
        cost = sum(costs) * evaluation.repeats if costs and None not in costs else None
        return PolicyEstimate(name, trials, None if calls is None else calls * trials, cost, fit_calls)
    require_runnable(workflow, evaluation.pool, depth=1)
    total, usd = 0, 0.0
    for task in evaluation.tasks:
        found = estimate(workflow, task.asked, evaluation.pool)
        if found.usd is None or any(step.conductor for step in found.steps):
            return PolicyEstimate(name, trials, None if found.calls < len(found.steps) else found.calls * trials, None)
        total, usd = total + found.calls, usd + found.usd
    return PolicyEstimate(name, trials, total * evaluation.repeats, usd * evaluation.repeats)


def _of_judge(judge: int, evaluation: Evaluation) -> PolicyEstimate:
    """If it reads every reply, at its longest."""
    asked = [
        estimate(judging(judge), judged_text(task, "x" * LONGEST_TAIL), evaluation.pool) for task in evaluation.tasks
    ]
    trials, prices = evaluation.repeats * len(evaluation.policies), [found.usd for found in asked]
    known = [price for price in prices if price is not None]
    usd = trials * sum(known) if len(known) == len(prices) else None
    return PolicyEstimate("judge", trials * len(asked), trials * len(asked), usd)


def _calls(calls: int | None) -> str:
    return "calls not known" if calls is None else _counted(calls, "call")


def _learning(calls: int) -> str:
    return f" and at most {calls:,} to fit" if calls else ""


def _usd(usd: float | None) -> str:
    return "cost not known" if usd is None else f"at most {dollars(usd)}"
