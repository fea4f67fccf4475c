"""Pool files (TOML), and where pools are found by name.

A file has a table [pool], with [pool.defaults] for what its workers share, and one [[pool.workers]] for each worker, in
the order of their ordinals; or `use = "NAME"` in place of all that, which names another pool. It may be the same file
that holds the other tables of an experiment (see `wfdsl.experiment`).
"""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wfdsl.errors import UsageError
from wfdsl.toml_file import build_model, did_you_mean, parse_toml, read_toml_file, require_keys, require_table
from wfdsl.workers.pool import Limits, Pool, PoolSettings, Prices, WorkerEntry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint
    from importlib.resources.abc import Traversable

    from pydantic import BaseModel

PLUGIN_GROUP: Final = "wfdsl.pools"
"""Entry points of plug-in pools: the object is called with the name asked for, and returns a `Pool`. The entry point
`gym` answers for every name that begins with `gym/`. Its method `names()`, if it has one, lists the names it knows."""

TABLES: Final = ("pool", "conductor", "budget", "run", "train")
"""The tables that a file may have; whoever reads a pool looks at the first one only."""

_NESTED: Final[Mapping[str, type[BaseModel]]] = {"limits": Limits, "prices": Prices}


def load_pool(path_or_name: str) -> Pool:
    """The pool of this file, or of this name.

    Raises:
        UsageError: there is none, or the file is no valid pool.
    """
    if names_a_file(path_or_name):
        return read_pool_file(Path(path_or_name))
    return named_pool(path_or_name)


def names_a_file(path_or_name: str) -> bool:
    """Whether this is the path of a file, and no pool's name."""
    return path_or_name.endswith(".toml") or ("\0" not in path_or_name and Path(path_or_name).is_file())


def named_pool(path_or_name: str) -> Pool:
    """The shipped pool of this name, or a plug-in's.

    Raises:
        UsageError: there is none.
    """
    shipped = _shipped()
    if path_or_name in shipped:
        return parse_pool(shipped[path_or_name].read_text(encoding="utf-8"), f"{path_or_name}.toml")
    for plugin in entry_points(group=PLUGIN_GROUP, name=path_or_name.partition("/")[0]):
        return _from_plugin(plugin, path_or_name)
    raise UsageError(_no_such_pool(path_or_name))


def shipped_names() -> tuple[str, ...]:
    """The names of the pools that come with this package, sorted."""
    return tuple(sorted(_shipped()))


def pool_names() -> tuple[str, ...]:
    """The names that `load_pool` knows: shipped pools first, then those of plug-ins, which are imported for this."""
    plugins = sorted(entry_points(group=PLUGIN_GROUP), key=lambda plugin: plugin.name)
    return (*shipped_names(), *(name for plugin in plugins for name in _names_of(plugin)))


def read_pool_file(path: Path) -> Pool:
    """Read a pool file.

    Raises:
        UsageError: the file cannot be read, or is no valid pool.
    """
    return _pool_of_tables(read_toml_file(path, "pool file"), str(path))


def parse_pool(text: str, source: str) -> Pool:
    """Read the text of a pool file; `source` is what errors call it.

    Raises:
        UsageError: the text is no valid pool.
    """
    return _pool_of_tables(parse_toml(text, source), source)


def pool_of_table(table: Mapping[str, Any], source: str) -> Pool:
    """The pool that a table [pool] describes, or names; `source` is what errors call the file.

    Raises:
        UsageError: it is no valid pool.
    """
    try:
        return _used(table, source) if "use" in table else _described(dict(table), source)
    except UsageError as error:
        raise error if str(error).startswith(source) else UsageError(f"{source}: {error}") from error


def beside(source: str, path_or_name: str) -> str:
    """What a file means by a path or a name: a file or folder next to it, if there is one, else what was written."""
    if not any(mark in path_or_name for mark in "./\\") or "\0" in path_or_name:
        return path_or_name  # a name
    near = Path(source).parent / path_or_name
    return str(near) if near.exists() else path_or_name


def _pool_of_tables(tables: dict[str, Any], source: str) -> Pool:
    require_keys(tables, TABLES, source)
    if not isinstance(tables.get("pool"), dict):
        raise UsageError(f"{source}: there is no table [pool]; begin with [pool] and one [[pool.workers]] per worker")
    return pool_of_table(tables["pool"], source)


def _used(table: Mapping[str, Any], source: str) -> Pool:
    """Another pool. It has to hold workers itself, so that nothing can go round in a circle."""
    used, rest = table["use"], table.keys() - {"use"}
    if not isinstance(used, str):
        raise UsageError(f"{source}: pool.use is the name or the file of a pool, not {type(used).__name__}")
    if rest:
        raise UsageError(f"{source}: pool: `use` takes a whole pool as it is: leave out {', '.join(sorted(rest))}")
    found = beside(source, used)
    if not names_a_file(found):
        return named_pool(found)
    tables = read_toml_file(Path(found), "pool file")
    if isinstance(tables.get("pool"), dict) and "use" in tables["pool"]:
        raise UsageError(f"{source}: pool.use names {found}, which only uses another pool: name that one")
    return _pool_of_tables(tables, found)


def _described(table: dict[str, Any], source: str) -> Pool:
    defaults, workers = table.pop("defaults", {}), table.pop("workers", [])
    require_keys(table, {*PoolSettings.model_fields, "defaults", "use", "workers"}, f"{source}: pool")
    place = f"{source}: pool.defaults"
    require_keys(require_table(defaults, place), WorkerEntry.model_fields, place)
    if not isinstance(workers, list) or not all(isinstance(worker, dict) for worker in workers):
        raise UsageError(f"{source}: workers are tables: write [[pool.workers]] above each")
    if isinstance(table.get("conductor"), str):
        table["conductor"] = beside(source, table["conductor"])
    settings = build_model(PoolSettings, {"name": Path(source).stem, **table}, f"{source}: pool")
    entries = [
        build_entry({**defaults, **worker}, source, _place(index, worker)) for index, worker in enumerate(workers)
    ]
    return Pool(entries, settings=settings)


def _place(index: int, worker: dict[str, Any]) -> str:
    return f'worker {index} ("{worker["name"]}")' if "name" in worker else f"worker {index}"


def build_entry(fields: dict[str, Any], source: str, where: str) -> WorkerEntry:
    """An entry from plain values, as a file has them; `source` and `where` are what errors call the place.

    Raises:
        UsageError: a key is not known, a value does not fit, or nobody provides such workers.
    """
    from wfdsl.workers.registry import check_provider  # noqa: PLC0415  (workers stand above pools)

    place = f"{source}: {where}"
    require_keys(fields, WorkerEntry.model_fields, place)
    for name, model in _NESTED.items():
        if name in fields:
            nested = f"{place}, {name}"
            require_keys(require_table(fields[name], nested), model.model_fields, nested)
    entry: WorkerEntry = build_model(WorkerEntry, fields, place)
    check_provider(entry)
    return entry


def _shipped() -> dict[str, Traversable]:
    folder = files("wfdsl") / "pools"
    return {Path(file.name).stem: file for file in folder.iterdir() if file.name.endswith(".toml")}


def _names_of(plugin: EntryPoint) -> tuple[str, ...]:
    """The names that a plug-in lists; its own where it lists none, or cannot be loaded, which using it will say."""
    try:
        listed = getattr(plugin.load(), "names", None)
    except (ImportError, AttributeError):
        listed = None
    return (plugin.name,) if listed is None else tuple(listed())


def _from_plugin(plugin: EntryPoint, name: str) -> Pool:
    try:
        answer = plugin.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(f'the plug-in for the pool "{name}" cannot be loaded ({plugin.value}): {error}') from error
    made = answer(name)
    if not isinstance(made, Pool):
        raise UsageError(f'the plug-in for the pool "{name}" returned {type(made).__name__}, not a Pool')
    return made


def _no_such_pool(name: str) -> str:
    known = pool_names()
    meant = did_you_mean(name, known)
    listed = f"{meant} Known: {', '.join(known)}" if not meant.startswith("Known") else meant
    return f'there is no pool "{name}", and no file of this name. {listed}; or a .toml file'
