"""Which model conducts: how a command names one, and the entry that this makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.pool import Pool, Prices, WorkerEntry
from wfdsl.workers.registry import providers

LOCAL: Final = "local"
MAX_TOKENS: Final = 1024
"""Tokens of a completion. Source: arXiv 2512.04388, section 4."""


def local_entry() -> WorkerEntry:
    """The small model that runs on this machine."""
    return WorkerEntry(
        name="conductor",
        provider="local",
        model="SmolLM2-135M-Instruct",
        seed=7,
        temperature=0.7,
        extra_body={"repeat_penalty": 1.2},  # without it a model this small fills every text to its limit
        max_tokens=MAX_TOKENS,
        timeout_s=300,
        prices=Prices(input=0.0, output=0.0, source="runs on this machine"),
    )


def model_entry(name: str, **settings: Any) -> WorkerEntry:
    """The entry of a model: `local`, `PROVIDER:MODEL`, or a pool file with one worker.

    `settings` are fields of an entry, such as `base_url`; those that are None do not count.

    Raises:
        UsageError: the name or a setting cannot be used.
    """
    given = {field: value for field, value in settings.items() if value is not None}
    provider, colon, model = name.partition(":")
    if name == LOCAL:
        return _changed(local_entry(), given)
    if name.endswith(".toml") or Path(name).is_file():
        return _changed(_only(Pool.load(name), name), given)
    if not colon or not model or provider not in providers() or provider == "conductor":
        known = ", ".join(f"{each}:MODEL" for each in ("openai", "anthropic", "google", "transformers"))
        raise UsageError(f"no Conductor {name!r}: write {LOCAL}, {known}, or a pool file with one worker")
    return _changed(WorkerEntry(name="conductor", provider=provider, model=model, max_tokens=MAX_TOKENS), given)


def _only(pool: Pool, name: str) -> WorkerEntry:
    if len(pool) != 1:
        raise UsageError(f"{name} has {len(pool)} workers: the file of a Conductor's model has one")
    return next(iter(pool))


def _changed(entry: WorkerEntry, given: dict[str, Any]) -> WorkerEntry:
    if not given:
        return entry
    try:
        return WorkerEntry(**{**entry.model_dump(exclude={"limits", "prices"}), **given}).model_copy(
            update={"limits": entry.limits, "prices": entry.prices}
        )
    except ValueError as error:
        raise UsageError(f"the Conductor's model cannot have these settings: {error}") from error
