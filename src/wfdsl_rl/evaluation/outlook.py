"""What an evaluation would ask and could cost at most, before anything is asked.

Policies with a fixed workflow (an attribute `workflow`) can be foreseen. Others may say how many calls of workers they
make at most, by a method `most_calls(pool) -> int | None`, and how many to learn before the first question, by
`learning_calls(pool) -> int`; what is not known is said to be so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wfdsl.interpreter.estimate import estimate
from wfdsl.interpreter.execution import require_runnable
from wfdsl.render.status import dollars

if TYPE_CHECKING:
    from wfdsl.conductor.policy import Policy
    from wfdsl.language.workflow import Workflow
    from wfdsl_rl.evaluation.evaluating import Evaluation


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known beforehand of one policy, over all its cells."""

    policy: str
    cells: int
    calls: int | None
    """Calls of workers; None: not known."""
    usd: float | None
    """US dollars at most, if each call succeeds at once; None: not known."""
    to_learn: int = 0
    """Calls before the first question; fewer if the journal, or another policy that learns on the same tasks, has
    some of them."""

    def to_dict(self) -> dict[str, Any]:
        """The outlook as plain values."""
        return {
            "policy": self.policy,
            "cells": self.cells,
            "calls": self.calls,
            "calls_to_learn": self.to_learn,
            "usd_at_most": self.usd,
        }


def outlook_on(evaluation: Evaluation) -> list[Outlook]:
    """What is known of each policy.

    Raises:
        UsageError: a fixed workflow cannot run on the pool.
    """
    return [_of_policy(name, policy, evaluation) for name, policy in evaluation.policies.items()]


def outlook_text(found: list[Outlook]) -> str:
    """The outlooks as lines for people."""
    lines = [f"{each.policy}: {_takes(each.cells, each.calls, each.usd, to_learn=each.to_learn)}" for each in found]
    if len(found) > 1:
        lines.append(_of_all(found))
    return "\n".join([*lines, "nothing was asked"])


def _of_all(found: list[Outlook]) -> str:
    known = [each.calls for each in found if each.calls is not None]
    prices = [each.usd for each in found if each.usd is not None]
    cells = sum(each.cells for each in found)
    whole = f"all: {_takes(cells, sum(known) if known else None, sum(prices) if prices else None)}"
    unknown = sum(each.calls is None or each.usd is None for each in found)
    if not unknown or not (known or prices):
        return whole
    return f"{whole}, and what is not known of {unknown} {'policy' if unknown == 1 else 'policies'}"


def _takes(cells: int, calls: int | None, usd: float | None, *, to_learn: int = 0) -> str:
    return f"{_counted(cells, 'cell')}, {_calls(calls)}{_learning(to_learn)}, {_usd(usd)}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _of_policy(name: str, policy: Policy, evaluation: Evaluation) -> Outlook:
    cells = len(evaluation.tasks) * evaluation.repeats
    workflow: Workflow | None = getattr(policy, "workflow", None)
    if workflow is None:
        most = getattr(policy, "most_calls", None)
        calls = None if most is None else most(evaluation.pool)
        learning = getattr(policy, "learning_calls", None)
        to_learn = 0 if learning is None else learning(evaluation.pool)
        return Outlook(name, cells, None if calls is None else calls * cells, None, to_learn)
    require_runnable(workflow, evaluation.pool, depth=1)
    total, usd = 0, 0.0
    for task in evaluation.tasks:
        found = estimate(workflow, task.question, evaluation.pool)
        if found.usd is None or any(step.conductor for step in found.steps):
            return Outlook(name, cells, None if found.calls < len(found.steps) else found.calls * cells, None)
        total, usd = total + found.calls, usd + found.usd
    return Outlook(name, cells, total * evaluation.repeats, usd * evaluation.repeats)


def _calls(calls: int | None) -> str:
    return "calls not known" if calls is None else _counted(calls, "call")


def _learning(calls: int) -> str:
    return f" and at most {calls:,} to learn" if calls else ""


def _usd(usd: float | None) -> str:
    return "cost not known" if usd is None else f"at most {dollars(usd)}"
