"""Providers, and the workers that are open: which builder makes the worker of an entry, built once per event loop.

A builder is `build(entry, open_workers) -> Worker`. Plug-ins add providers in the entry-point group `wfdsl.workers`:
the name is the provider, the object is the builder.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AsyncExitStack
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from wfdsl.errors import UsageError
from wfdsl.installation import install_command
from wfdsl.own_code import load_object
from wfdsl.protocols import Worker
from wfdsl.settings import did_you_mean
from wfdsl.workers.entry import WorkerEntry

_Resource = TypeVar("_Resource")


class _Shared:
    """A resource with the pools' workers that hold it; the last ones to let go close it."""

    def __init__(self, resource: Any) -> None:
        self.resource = resource
        self.holders: WeakSet[OpenWorkers] = WeakSet()


_SHARED: Final[WeakKeyDictionary[Any, WeakValueDictionary[Hashable, _Shared]]] = WeakKeyDictionary()
"""By event loop, what the workers of all pools have together, such as one local server for each model."""


class OpenWorkers:
    """The workers of a pool that were built in one event loop.

    A client or a server belongs to the event loop in which it was opened, so each loop has its own. What has a method
    `aclose` holds connections, a process or memory until that is called.
    """

    def __init__(self, loop: Any = None) -> None:
        """Outside of a loop (None), nothing is shared with other pools."""
        self.users = 0
        """Open blocks; the last one to leave closes them."""
        self.workers: dict[str, Worker] = {}
        """By name, those that were built."""
        self._known = WeakValueDictionary() if loop is None else _SHARED.setdefault(loop, WeakValueDictionary())
        self._shared: dict[Hashable, _Shared] = {}
        self._kept: list[Any] = []

    def keep(self, worker: Worker) -> Worker:
        """Close this worker with the others, if it can be closed."""
        if hasattr(worker, "aclose"):
            self._kept.append(worker)
        return worker

    def shared(self, key: Hashable, make: Callable[[], _Resource]) -> _Resource:
        """The resource of this key, made on the first call; it is closed with the last workers that hold it."""
        held = self._known.get(key)
        if held is None:
            held = self._known[key] = _Shared(make())
        held.holders.add(self)
        self._shared[key] = held
        resource: _Resource = held.resource
        return resource

    async def aclose(self) -> None:
        """Close the workers, then what no others share with them; new ones can be built again.

        Workers stay where none of them holds anything.
        """
        shared, kept = self._shared, self._kept
        if not shared and not kept:
            return
        self.workers, self._shared, self._kept = {}, {}, []
        async with AsyncExitStack() as stack:
            for key, held in shared.items():
                held.holders.discard(self)
                if not held.holders:
                    self._known.pop(key, None)
                    stack.push_async_callback(held.resource.aclose)
            for worker in kept:
                stack.push_async_callback(worker.aclose)


Builder: TypeAlias = Callable[[WorkerEntry, OpenWorkers], Worker]

PLUGIN_GROUP: Final = "wfdsl.workers"

_BUILT_IN: Final = {
    "openai": "wfdsl.workers.openai_api:build",
    "google": "wfdsl.workers.openai_api:build",
    "anthropic": "wfdsl.workers.anthropic_api:build",
    "local": "wfdsl.workers.local:build",
    "transformers": "wfdsl.workers.transformers_local:build",
    "scripted": "wfdsl.workers.scripted:build",
    "conductor": "wfdsl.conductor.named:build",
}
_EXTRAS: Final = {
    "openai": "openai",
    "anthropic": "anthropic",
    "torch": "torch",
    "transformers": "torch",
    "llguidance": "torch",
}
"""By package: the extra that installs it."""


def providers() -> tuple[str, ...]:
    """Every provider that an entry may name, sorted."""
    return tuple(sorted({*_BUILT_IN, "function", *(found.name for found in entry_points(group=PLUGIN_GROUP))}))


def build_worker(entry: WorkerEntry, open_workers: OpenWorkers) -> Worker:
    """Build the worker of an entry.

    Raises:
        UsageError: the provider is not known, or a key, a package or a setting is missing.
    """
    provider = entry.provider
    if provider in _BUILT_IN:
        try:
            build = EntryPoint(provider, _BUILT_IN[provider], PLUGIN_GROUP).load()
        except ModuleNotFoundError as error:
            if error.name not in _EXTRAS:
                raise
            what = f'worker "{entry.name}" needs the package {error.name}: {install_command(_EXTRAS[error.name])}'
            raise UsageError(what) from error
    elif plugin := next(iter(entry_points(group=PLUGIN_GROUP, name=provider)), None):
        build = load_object(plugin.value, installed=True)
    else:
        check_provider(entry)
        given = "give the function to Pool.from_functions"
        raise UsageError(f'worker "{entry.name}": provider {provider} cannot be set in a file; {given}')
    return cast(Builder, build)(entry, open_workers)


def check_provider(entry: WorkerEntry) -> None:
    """Refuse an entry whose provider is not known, and say which one was probably meant.

    Raises:
        UsageError: the provider is not known.
    """
    known = providers()
    if entry.provider not in known:
        hint = did_you_mean(entry.provider, known)
        raise UsageError(f'worker "{entry.name}": there is no provider "{entry.provider}". {hint}')
