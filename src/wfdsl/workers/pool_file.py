"""Pool files (TOML): the settings of a pool and the entries of its workers.

A file has a table [pool], with [pool.defaults] for what its workers share, and one [[pool.workers]] for each worker, in
the order of their indices; or `use = "NAME"` instead of all that, which names another pool. The same file may hold the
other tables of an experiment (see `wfdsl.experiment`). `wfdsl.workers.pool` makes pools of what is read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from wfdsl.errors import UsageError
from wfdsl.settings import TABLES, build_model, read_toml_file, relative_to, require_keys, require_table
from wfdsl.workers.entry import Limits, PoolSettings, Prices, WorkerEntry
from wfdsl.workers.registry import check_provider

_NESTED: Final[Mapping[str, type[BaseModel]]] = {"limits": Limits, "prices": Prices}


class PoolDescription(NamedTuple):
    """What a table [pool] says about a pool of its own."""

    settings: PoolSettings
    entries: list[WorkerEntry]


def names_a_file(path_or_name: str) -> bool:
    """Whether this is the path of a file, not the name of a pool."""
    return path_or_name.endswith(".toml") or ("\0" not in path_or_name and Path(path_or_name).is_file())


def pool_table(tables: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The table [pool] of a file; `source` is what errors call the file.

    Raises:
        UsageError: there is none, or a table that is not known.
    """
    require_keys(tables, TABLES, source)
    if not isinstance(tables.get("pool"), dict):
        raise UsageError(f"{source}: there is no table [pool]; begin with [pool] and one [[pool.workers]] per worker")
    table: dict[str, Any] = tables["pool"]
    return table


def used_pool(table: Mapping[str, Any], source: str) -> str | None:
    """The name or file of the pool that a table [pool] uses; None if the table describes its own workers.

    Raises:
        UsageError: `use` is not a text, is not the only key, or names a file that only uses a third pool.
    """
    if "use" not in table:
        return None
    used, rest = table["use"], table.keys() - {"use"}
    if not isinstance(used, str):
        raise UsageError(f"{source}: pool.use is the name or the file of a pool, not {type(used).__name__}")
    if rest:
        raise UsageError(f"{source}: pool: `use` takes a whole pool as it is: leave out {', '.join(sorted(rest))}")
    found = relative_to(source, used)
    if names_a_file(found):
        other = read_toml_file(Path(found), "pool file").get("pool")
        if isinstance(other, dict) and "use" in other:  # so that nothing can go round in a circle
            raise UsageError(f"{source}: pool.use names {found}, which only uses another pool: name that one")
    return found


def describe_pool(table: Mapping[str, Any], source: str) -> PoolDescription:
    """The pool that a table [pool] describes; `source` is what errors call the file.

    Raises:
        UsageError: a key is not known, or a value does not fit.
    """
    table = dict(table)
    defaults, workers = table.pop("defaults", {}), table.pop("workers", [])
    require_keys(table, {*PoolSettings.model_fields, "defaults", "use", "workers"}, f"{source}: pool")
    place = f"{source}: pool.defaults"
    require_keys(require_table(defaults, place), WorkerEntry.model_fields, place)
    if not isinstance(workers, list) or not all(isinstance(worker, dict) for worker in workers):
        raise UsageError(f"{source}: workers are tables: write [[pool.workers]] above each")
    if isinstance(table.get("conductor"), str):
        table["conductor"] = relative_to(source, table["conductor"])
    settings = build_model(PoolSettings, {"name": Path(source).stem, **table}, f"{source}: pool")
    entries = [
        build_entry({**defaults, **worker}, source, _place(index, worker)) for index, worker in enumerate(workers)
    ]
    return PoolDescription(settings, entries)


def build_entry(fields: Mapping[str, Any], source: str, where: str) -> WorkerEntry:
    """An entry from plain values, as a file has them; `source` and `where` are what errors call the place.

    Raises:
        UsageError: a key is not known, a value does not fit, or the provider is not known.
    """
    place = f"{source}: {where}"
    require_keys(fields, WorkerEntry.model_fields, place)
    for name, model in _NESTED.items():
        if name in fields:
            nested = f"{place}, {name}"
            require_keys(require_table(fields[name], nested), model.model_fields, nested)
    entry: WorkerEntry = build_model(WorkerEntry, fields, place)
    try:
        check_provider(entry)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from error
    return entry


def _place(index: int, worker: Mapping[str, Any]) -> str:
    return f'worker {index} ("{worker["name"]}")' if "name" in worker else f"worker {index}"
