"""Limits, budget and leases as metrics, read when the page is asked for: what `wfdsl ctl` shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from wfdsl.server.leases import Leases
from wfdsl.server.live_limits import LiveLimits
from wfdsl.server.metrics import Reading

_PER_WORKER: Final = {
    "concurrency": ("wfdsl_worker_concurrency_limit", "Most calls of a worker in flight"),
    "allowed": ("wfdsl_worker_concurrency_allowed", "Calls in flight that the provider's refusals have left"),
    "active": ("wfdsl_worker_calls_in_flight", "Calls of a worker in flight, those of leases included"),
    "waiting": ("wfdsl_worker_calls_waiting", "Calls that wait for a place at a worker"),
    "held_s": ("wfdsl_worker_held_seconds", "Seconds for which a worker is held back, as its provider asked"),
    "requests_per_minute": ("wfdsl_worker_requests_per_minute_limit", "Most requests of a worker in a minute"),
    "tokens_per_minute": ("wfdsl_worker_tokens_per_minute_limit", "Most tokens of a worker in a minute"),
}
"""The gauges of a worker, by their keys in `LiveLimits.describe`."""


def limit_readings(limits: LiveLimits, leases: Leases) -> Iterator[Reading]:
    """All of them, as they are now."""
    shown, holders = limits.describe(), leases.describe()
    yield from _of_budget(shown["budget"])
    for key, (name, about) in _PER_WORKER.items():
        yield Reading(name, about, {worker: each[key] for worker, each in shown["workers"].items()}, "worker")
    flying = shown["workflows"]
    yield Reading("wfdsl_workflows_limit", "Most workflows in flight", {"": flying["limit"]})
    yield Reading("wfdsl_workflows_in_flight", "Workflows in flight", {"": flying["active"]})
    yield Reading("wfdsl_lease_holders", "Processes that draw leases", {"": len(holders)})
    yield Reading("wfdsl_leases_open", "Leases that have not ended", {"": sum(each["calls"] for each in holders)})
    yield Reading("wfdsl_leases_ended", "Leases that have ended, by how", leases.counts, "status", counts=True)


def _of_budget(budget: dict[str, Any]) -> Iterator[Reading]:
    for unit in ("calls", "tokens", "usd"):
        for what, amounts in (("limit", budget), ("spent", budget["spent"]), ("reserved", budget["reserved"])):
            yield Reading(f"wfdsl_budget_{what}_{unit}", f"The budget: {unit}, {what}", {"": amounts[unit]})
