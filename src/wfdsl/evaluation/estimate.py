"""What an evaluation would ask and could cost at most, before anything is asked.

A policy with a fixed workflow (an attribute `workflow`) and a Conductor can be estimated. Others may have a method
`dearest(pool)`, which gives workflows of which one costs at least as much, with all its steps, as what a question leads
to, and say by `fit_calls(pool) -> int` how many calls they need to fit before the first question. What is not known is
reported as such.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.estimate import estimate_solve
from wfdsl.conductor.policy import Policy
from wfdsl.evaluation.evaluate import LONGEST_TAIL, judged_text, judging
from wfdsl.evaluation.trials import Evaluation
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.record import total_usd
from wfdsl.interpreter.worker_profile import estimate
from wfdsl.language.workflow import Workflow
from wfdsl.render.status import dollars
from wfdsl.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class PolicyEstimate:
    """What is known beforehand of one policy, over all its trials."""

    policy: str
    trials: int
    calls: int | None
    """Calls of workers, and completions of a Conductor, at most; None: not known."""
    usd_at_most: float | None
    """US dollars, if each call succeeds at once; None: not known."""
    fit_calls: int = 0
    """Calls before the first question; fewer if the journal, or another policy that is fitted on the same tasks, has
    some of them."""

    def __str__(self) -> str:
        calls = "calls not known" if self.calls is None else _counted(self.calls, "call")
        fit = f" and at most {self.fit_calls:,} to fit" if self.fit_calls else ""
        usd = "cost not known" if self.usd_at_most is None else f"at most {dollars(self.usd_at_most)}"
        return f"{self.policy}: {_counted(self.trials, 'trial')}, {calls}{fit}, {usd}"


def estimate_policies(evaluation: Evaluation) -> list[PolicyEstimate]:
    """What is known of each policy.

    Raises:
        UsageError: a fixed workflow cannot run on the pool.
    """
    found = [_of_policy(name, policy, evaluation) for name, policy in evaluation.policies.items()]
    if evaluation.judge is not None:  # if it reads every reply, at its longest
        workflow, times = judging(evaluation.judge), evaluation.repeats * len(found)
        texts = [judged_text(task, "x" * LONGEST_TAIL) for task in evaluation.tasks]
        found.append(_summed("judge", [_at_most([workflow], text, evaluation.pool) for text in texts], times))
    return found


def estimate_text(found: list[PolicyEstimate]) -> str:
    """The estimates as lines for people; the sum is of what is known."""
    lines = [str(each) for each in found]
    if len(found) > 1:
        calls, prices = [each.calls for each in found], [each.usd_at_most for each in found]
        known = PolicyEstimate(
            "all", sum(each.trials for each in found), sum(filter(None, calls)), sum(filter(None, prices))
        )
        lines.append(f"{known}{', and what is not known' if None in [*calls, *prices] else ''}")
    return "\n".join([*lines, "nothing was asked"])


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _of_policy(name: str, policy: Policy, evaluation: Evaluation) -> PolicyEstimate:
    pool = evaluation.pool
    if isinstance(policy, Conductor):
        solved = [estimate_solve(policy, task.asked, pool) for task in evaluation.tasks]
        return _summed(name, [(each.calls, each.usd) for each in solved], evaluation.repeats)
    workflow: Workflow | None = getattr(policy, "workflow", None)
    if workflow is not None:
        require_runnable(workflow, pool, depth=1)
        found = [_at_most([workflow], task.asked, pool) for task in evaluation.tasks]
    elif hasattr(policy, "dearest"):
        found = [_at_most(policy.dearest(pool), task.asked, pool, dead_steps=True) for task in evaluation.tasks]
    else:
        found = [(None, None)] * len(evaluation.tasks)
    fit_calls = policy.fit_calls(pool) if hasattr(policy, "fit_calls") else 0
    return _summed(name, found, evaluation.repeats, fit_calls)


def _at_most(
    workflows: Iterable[Workflow], question: str, pool: Pool, *, dead_steps: bool = False
) -> tuple[int | None, float | None]:
    """Calls and dollars of the dearest of some workflows."""
    found = [estimate(each, question, pool, run_dead_steps=dead_steps) for each in workflows]
    if any(step.conductor for each in found for step in each.steps):
        return None, None
    prices = [each.usd for each in found if each.usd is not None]
    return max(each.calls for each in found), max(prices) if len(prices) == len(found) else None


def _summed(name: str, found: list[tuple[int | None, float | None]], times: int, fit_calls: int = 0) -> PolicyEstimate:
    """The estimate of a policy, from calls and dollars of its questions, each asked so many times."""
    calls = [each for each, _ in found if each is not None]
    usd = total_usd(each for _, each in found)
    known = sum(calls) * times if len(calls) == len(found) else None
    return PolicyEstimate(name, len(found) * times, known, None if usd is None else usd * times, fit_calls)
