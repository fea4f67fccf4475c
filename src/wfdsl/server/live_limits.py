"""The limits of a running server: what they are, how much of each is used, and how they are changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from wfdsl.config import options_of
from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.limits import ConcurrencyLimiter, WorkerLimits, limits_of
from wfdsl.interpreter.worker_profile import profile_of
from wfdsl.server.api_errors import ApiError
from wfdsl.workers.pool import Pool

_BUDGET: Final = ("calls", "tokens", "usd")
_WORKER: Final = ("concurrency", "requests_per_minute", "tokens_per_minute")
_MOST: Final = 2**53
"""Whole numbers beyond it are not exact in JSON everywhere."""


def limits_by_name(pool: Pool) -> dict[str, WorkerLimits]:
    """The limits of a pool's workers in the running event loop, which the pool's own calls share."""
    profiles = [profile_of(pool, index) for index in pool.indices]
    return {each.name: limits_of(each, None if each.endpoint else pool.worker(each.index)) for each in profiles}


class LiveLimits:
    """The limits of the workers, of the workflows in flight, and the budget."""

    def __init__(
        self, workers: Mapping[str, WorkerLimits], budget: BudgetTracker, workflows: ConcurrencyLimiter
    ) -> None:
        self.workers = workers
        self.budget = budget
        self.workflows = workflows

    def describe(self) -> dict[str, Any]:
        """What the limits are and what is used of them; None: no limit."""
        budget = {name: getattr(self.budget.budget, name) for name in _BUDGET}
        return {
            "workers": {name: _described(limits) for name, limits in self.workers.items()},
            "workflows": {"limit": _number(self.workflows.limit), **_load(self.workflows)},
            "budget": {**budget, "spent": self.budget.spent._asdict(), "reserved": self.budget.reserved._asdict()},
        }

    def change(self, changes: Any) -> None:
        """Change some of the limits, all or none: `workers` by their names, `workflows`, and `budget`.

        Raises:
            ApiError: a limit is not known, or its value does not fit.
        """
        workers, budget, workflows = _checked(changes, self.workers)
        try:
            now = replace(self.budget.budget, **budget)
        except UsageError as error:
            raise _invalid(f"budget.{error}") from error
        for name, limits in workers.items():
            _change(self.workers[name], limits)
        if workflows is not None:
            self.workflows.limit = workflows
            self.workflows.admit()
        if budget:
            self.budget.change(now)
            self.budget.look_again()


def _checked(changes: Any, workers: Mapping[str, WorkerLimits]) -> tuple[dict[str, Any], dict[str, Any], int | None]:
    asked = _table(changes, "the body", ("workers", "budget", "workflows"))
    found = {
        name: _table(limits, f"workers.{name}", _WORKER)
        for name, limits in _table(asked.get("workers", {}), "workers", tuple(workers)).items()
    }
    for name, limits in found.items():
        for key, value in limits.items():
            if value is not None:
                _require_count(value, f"workers.{name}.{key}")
    if "workflows" in asked:
        _require_count(asked["workflows"], "workflows")
    budget = _table(asked.get("budget", {}), "budget", _BUDGET)
    wanted = {each.name: each for each in options_of(Budget)}
    for name, value in budget.items():
        if value is not None and (problem := wanted[name].problem(value)) is not None:
            raise _invalid(f"budget.{name} {problem}")
    return found, budget, asked.get("workflows")


def _change(limits: WorkerLimits, changes: Mapping[str, int | None]) -> None:
    for name, value in changes.items():
        if name == "concurrency":
            limits.concurrency.set_ceiling(math.inf if value is None else value)
            limits.concurrency.lift()  # the one who changes it knows more than the last refusal did
        else:
            limits.set_per_minute("requests" if name.startswith("requests") else "tokens", value)


def _described(limits: WorkerLimits) -> dict[str, Any]:
    limiter = limits.concurrency
    return {
        "concurrency": _number(limiter.ceiling),
        "allowed": _number(limiter.allowed),
        **_load(limiter),
        "held_s": round(limits.held_s, 3),
        "requests_per_minute": None if limits.requests is None else limits.requests.limit,
        "tokens_per_minute": None if limits.tokens is None else limits.tokens.limit,
    }


def _load(limiter: ConcurrencyLimiter) -> dict[str, int]:
    return {"active": limiter.active, "waiting": len(limiter.waiting or ())}


def _number(limit: float) -> float | None:
    return None if math.isinf(limit) else limit


def _table(value: Any, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(f"{name} must be an object with some of: {', '.join(keys)}")
    for key in value:
        if key not in keys:
            raise _invalid(f"{name} has no {key!r} (known: {', '.join(keys)})")
    return value


def _require_count(value: Any, name: str) -> None:
    if type(value) is not int or not 1 <= value <= _MOST:
        raise _invalid(f"{name} must be a whole number from 1 to 2^53 (got {value!r:.80})")


def _invalid(message: str) -> ApiError:
    return ApiError(400, message, code="invalid_value")
