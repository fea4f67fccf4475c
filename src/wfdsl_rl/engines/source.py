"""Where a training engine gets its rewards from: a reward server, or a pool and tasks in the engine's own process.

In process, each process of the engine has limits and a budget of its own, which with a journal counts what all
processes had spent when it started; a reward server has one of each for all.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, Protocol

from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import Budget
from wfdsl.tasks.loading import load_tasks
from wfdsl_rl.engines.client import RewardClient
from wfdsl_rl.engines.results import Result, result_of
from wfdsl_rl.reward import Reward
from wfdsl_rl.reward_maker import make_reward
from wfdsl_rl.rows import offer_of
from wfdsl_rl.scoring import Rollout, Scored

_SERVER_KEY: Final = "WFDSL_SERVER_KEY"
_LOG: Final = logging.getLogger(__name__)
"""Prints warnings on standard error, unless the engine says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Where rewards come from: a server (`url`), or `pool` and `tasks` in this process."""

    url: str | None = None
    """The address of a reward server, which has the pool and the tasks. Its key, if it has one, is in the environment
    variable WFDSL_SERVER_KEY."""
    run: str = ""
    """With a server, a name before all sample ids, so that experiments share nothing."""
    pool: str | None = None
    """The name or file of the workers."""
    tasks: str | None = None
    """The name or file of the tasks."""
    limit: int | None = None
    """How many tasks are read."""
    seed: int | None = None
    """Which tasks are read, as in `load_tasks`."""
    journal: str | None = None
    """Without a server, a file that keeps every call."""
    budget_usd: float | None = None
    """Without a server, the most that this process spends, in US dollars. With a journal, what all processes that share
    it had spent when this one started counts; what the others spend afterwards does not."""
    patience_s: float = 600.0
    """With a server, how long a request is repeated while it does not answer. A busy server is waited for longer."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SourceOptions:
        """The options in an engine's configuration.

        Raises:
            UsageError: one is not known.
        """
        names = [each.name for each in fields(cls)]
        unknown = sorted(set(values) - set(names))
        if unknown:
            raise UsageError(f"a reward source has no option {', '.join(unknown)}; it has {', '.join(names)}")
        return cls(**values)


class RewardSource(Protocol):
    """Scores samples (`task`, `completion`, and if known `sample_id`, `shown`, `true`, `previous`)."""

    async def score(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The results, in order."""

    def score_sync(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The same in a thread without an event loop."""


class InProcess:
    """A reward of this process."""

    def __init__(self, reward: Reward) -> None:
        self.reward = reward

    async def score(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The results, in order.

        Raises:
            UsageError: a task is not known, or something that running or grading needs is not there.
            BudgetExhausted: a call does not fit into the budget any more.
        """
        return _results(samples, await self.reward.score(self._rollouts(samples)))

    def score_sync(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The same in a thread without an event loop.

        Raises:
            UsageError, BudgetExhausted: as in `score`.
        """
        return _results(samples, self.reward.score_sync(self._rollouts(samples)))

    def _rollouts(self, samples: Sequence[Mapping[str, Any]]) -> list[Rollout]:
        return [self._rollout(sample) for sample in samples]

    def _rollout(self, sample: Mapping[str, Any]) -> Rollout:
        task = self.reward.tasks.get(sample["task"])
        if task is None:
            raise UsageError(f"there is no task {sample['task']!r} among {len(self.reward.tasks)}")
        known = sample.get("sample_id")
        return Rollout(
            completion=sample["completion"],
            task=task,
            sample_id=known or f"sample-{secrets.token_hex(8)}",
            run_id=known or "",
            offer=offer_of(sample, self.reward.pool) if sample.get("true") else None,
            previous=tuple(sample["previous"]) if sample.get("previous") else None,
            executions=self.reward.executions,
        )


@lru_cache
def reward_source(options: SourceOptions) -> RewardSource:
    """The source that an engine's options name; the same options give the same source.

    Raises:
        UsageError: neither a server nor a pool with tasks is given, or one of them cannot be used.
    """
    if options.url is not None:
        _require_in_process(options)
        key = os.environ.get(_SERVER_KEY)
        return RewardClient(options.url, key, run=options.run, patience_s=options.patience_s, say=_LOG.warning)
    if options.pool is None or options.tasks is None:
        raise UsageError("give url, the address of a reward server, or pool and tasks")
    tasks = load_tasks(options.tasks, limit=options.limit, seed=options.seed)
    budget = None if options.budget_usd is None else Budget(usd=options.budget_usd)
    return InProcess(make_reward(options.pool, tasks, journal=options.journal, budget=budget))


def _require_in_process(options: SourceOptions) -> None:
    for name, what in {"journal": "journal", "budget_usd": "budget"}.items():
        if getattr(options, name) is not None:
            raise UsageError(f"the reward server keeps the {what}: leave {name} out, or leave url out")


def numbers_of(result: Result, unscored: float) -> dict[str, float]:
    """What a trainer logs of a result; all are numbers, so that they have means.

    `score` is the result's, or `unscored` if the outcome (`unjudged`, `failed`) says nothing about the completion.
    """
    outcome, score = result["outcome"], result["score"]
    return {
        "score": unscored if score is None else float(score),
        "right": float(outcome == "right"),
        "valid": float(outcome != "invalid"),
        "unscored": float(score is None),
        "steps": float(result["steps"] or 0),
        "cost_usd": float(result["cost_usd"] or 0.0),
    }


def _results(samples: Sequence[Mapping[str, Any]], scored: Sequence[Scored]) -> list[Result]:
    return [{"task": sample["task"], **result_of(each)} for sample, each in zip(samples, scored, strict=True)]
