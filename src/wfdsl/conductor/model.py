"""Which model conducts: how a command names one, and the entry that this makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from wfdsl.errors import UsageError
from wfdsl.pool import Pool, Prices, WorkerEntry
from wfdsl.toml_file import first_problem
from wfdsl.workers.registry import providers

LOCAL: Final = "local"
MAX_TOKENS: Final = 1024
"""Tokens of a completion. Source: arXiv 2512.04388, section 4."""


_CONFIGURATIONS: Final = ("config.json", "adapter_config.json")


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
    """The entry of a model: `local`, `PROVIDER:MODEL`, a checkpoint's folder, or a pool file with one worker.

    `settings` are fields of an entry, such as `base_url`; those that are None do not count.

    Raises:
        UsageError: the name or a setting cannot be used.
    """
    given = {field: value for field, value in settings.items() if value is not None}
    provider, _, model = name.partition(":")
    if name == LOCAL:
        return _changed(local_entry(), given)
    if name.endswith(".toml") or Path(name).is_file():
        return _changed(_only(Pool.load(name), name), given)
    if Path(name).is_dir():
        provider, model = "transformers", name
    if not model or provider not in providers() or provider in ("conductor", "function"):
        known = ", ".join(f"{each}:MODEL" for each in ("openai", "anthropic", "google", "transformers"))
        raise UsageError(f"no Conductor {name!r}: write {LOCAL}, {known}, a checkpoint's folder, or a pool file")
    if provider == "transformers":
        _require_checkpoint(Path(model))
    return _changed(WorkerEntry(name="conductor", provider=provider, model=model, max_tokens=MAX_TOKENS), given)


def _require_checkpoint(folder: Path) -> None:
    """Refuse a folder that holds no model; what is no folder may be a name that the hub knows."""
    if folder.is_dir() and not any((folder / name).is_file() for name in _CONFIGURATIONS):
        raise UsageError(f"{folder} is no checkpoint: it has no {_CONFIGURATIONS[0]}; name the folder that holds one")


def _only(pool: Pool, name: str) -> WorkerEntry:
    if len(pool) != 1:
        raise UsageError(f"{name} has {len(pool)} workers: the file of a Conductor's model has one")
    entry = next(iter(pool))
    if entry.provider == "conductor":
        raise UsageError(f'{name}: the file of a Conductor\'s model names the provider of the model, not "conductor"')
    return entry


def _changed(entry: WorkerEntry, given: dict[str, Any]) -> WorkerEntry:
    if not given:
        return entry
    try:
        return WorkerEntry(**{**entry.model_dump(exclude={"limits", "prices"}), **given}).model_copy(
            update={"limits": entry.limits, "prices": entry.prices}
        )
    except ValidationError as error:
        key, reason = first_problem(error)
        raise UsageError(f"the Conductor's model: {key}: {reason}") from error
