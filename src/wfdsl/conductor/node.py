"""Conductor nodes from pool files: a worker whose provider is `conductor`.

The entry's own fields describe the model. Its `options` say which provider the model has, and hold options of
`ConductorConfig`; other options go to the model's provider.
"""

from __future__ import annotations

from typing import Final

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.settings import from_table, options_of
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.registry import OpenWorkers, build_worker

_NOT_OF_NODES: Final = frozenset(
    {"model", "base_url", "api_key_env", "max_tokens", "temperature"}  # the entry's own fields say these
    | {"default", "without", "pick", "shuffle", "seed"}  # a node is offered the pool of its run
)
_OPTIONS: Final = frozenset(each.name for each in options_of(ConductorConfig)) - _NOT_OF_NODES


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> Conductor:
    """The Conductor of an entry; its model's client is closed with the open workers.

    Raises:
        UsageError: an option cannot be used, or the model cannot be built.
    """
    other = {name: value for name, value in entry.options.items() if name not in _OPTIONS and name != "provider"}
    model = entry.model_copy(update={"provider": _provider(entry), "options": other})
    worker = open_workers.keep(build_worker(model, open_workers))
    own = {name: value for name, value in entry.options.items() if name in _OPTIONS}
    try:
        return Conductor(worker, entry=model, config=from_table(ConductorConfig, own, "options"))
    except UsageError as error:
        raise UsageError(f'worker "{entry.name}": {error}') from error


def _provider(entry: WorkerEntry) -> str:
    provider = entry.options.get("provider")
    if not isinstance(provider, str) or provider == "conductor":
        raise UsageError(
            f'worker "{entry.name}": a conductor needs the provider of its model: options = {{ provider = "openai" }}'
        )
    return provider
