"""Names and content hashes of tasks and pools, so that equal ones are recognised."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool

HOW_ONLY: Final = {"description", "tags", "limits", "timeout_s", "idle_timeout_s", "retries"}
"""Fields of a worker's entry that change no answer and no cost of a call."""
SIMULATED: Final = frozenset({"gym", "scripted"})
"""Providers of workers that are not models."""
_DESCRIPTIVE: Final = {"source", "split", "metadata", "id"}


def hash_of(plain: Any) -> str:
    """SHA-256 of plain values, in hexadecimal."""
    text = json.dumps(plain, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def task_name(task: Task) -> str:
    """What a task is called in an evaluation: its source and its id."""
    return task.id if not task.source or task.id.startswith(task.source) else f"{task.source}/{task.id}"


def task_hash(task: Task) -> str:
    """What a task asks and how it is judged, as 16 hexadecimal digits; its names do not count."""
    return hash_of(task.model_dump(mode="json", exclude=_DESCRIPTIVE))[:16]


def is_simulated(pool: Pool) -> bool:
    """Whether a pool has workers that are no models."""
    return any(entry.provider in SIMULATED for entry in pool)


def pool_description(pool: Pool) -> dict[str, Any]:
    """A pool with its prices, and a hash of what can change answers or costs. Entries hold no keys."""
    entries = {str(index): pool.entry(index) for index in pool.indices}
    settings = pool.settings.model_dump(mode="json")
    identity = {index: entry.model_dump(mode="json", exclude=HOW_ONLY) for index, entry in entries.items()}
    return {
        "name": pool.name,
        "settings": settings,
        "workers": {index: entry.model_dump(mode="json", exclude_defaults=True) for index, entry in entries.items()},
        "hash": hash_of([settings["max_reply_chars"], identity]),
    }
