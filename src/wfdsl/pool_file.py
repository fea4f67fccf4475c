"""Pool files (TOML), and where pools are found by name.

A file has a table [pool], with [pool.defaults] for what its workers share, and one [[pool.workers]] for each worker, in
the order of their ordinals. It may be the same file that holds the tables of other commands.
"""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from wfdsl.errors import UsageError
from wfdsl.pool import Limits, Pool, PoolSettings, Prices, WorkerEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.resources.abc import Traversable

PLUGIN_GROUP: Final = "wfdsl.pools"
"""Entry points of plug-in pools: the object is called with the name asked for, and returns a `Pool`. The entry point
`gym` answers for every name that begins with `gym/`."""

_OTHER_TABLES: Final = frozenset({"conductor", "budget", "run", "train"})
_MAX_FILE_BYTES: Final = 1_048_576
_NESTED: Final[Mapping[str, type[BaseModel]]] = {"limits": Limits, "prices": Prices}


def load_pool(path_or_name: str) -> Pool:
    """The pool of this file, or of this name.

    Raises:
        UsageError: there is none, or the file is no valid pool.
    """
    if path_or_name.endswith(".toml") or Path(path_or_name).is_file():
        return read_pool_file(Path(path_or_name))
    shipped = _shipped()
    if path_or_name in shipped:
        return parse_pool(shipped[path_or_name].read_text(encoding="utf-8"), f"{path_or_name}.toml")
    for plugin in entry_points(group=PLUGIN_GROUP, name=path_or_name.partition("/")[0]):
        return _from_plugin(plugin.load()(path_or_name), path_or_name)
    raise UsageError(_no_such_pool(path_or_name))


def shipped_names() -> tuple[str, ...]:
    """The names of the pools that come with this package, sorted."""
    return tuple(sorted(_shipped()))


def pool_names() -> tuple[str, ...]:
    """The names that `load_pool` knows: shipped pools first, then plug-ins."""
    return (*shipped_names(), *sorted(found.name for found in entry_points(group=PLUGIN_GROUP)))


def read_pool_file(path: Path) -> Pool:
    """Read a pool file.

    Raises:
        UsageError: the file cannot be read, or is no valid pool.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_FILE_BYTES + 1)
        if len(raw) > _MAX_FILE_BYTES:
            raise UsageError(f"{path}: a pool file has at most {_MAX_FILE_BYTES // 1024} KiB")
        text = raw.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot read this pool file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: this pool file is not a UTF-8 text (byte {error.start})") from error
    return parse_pool(text, str(path))


def parse_pool(text: str, source: str) -> Pool:
    """Read the text of a pool file; `source` is what errors call it.

    Raises:
        UsageError: the text is no valid pool.
    """
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{source}: not a TOML file: {error}") from error
    _check_keys(tables, {"pool", *_OTHER_TABLES}, source, "")
    if not isinstance(tables.get("pool"), dict):
        raise UsageError(f"{source}: there is no table [pool]; begin with [pool] and one [[pool.workers]] per worker")
    try:
        return _pool(tables["pool"], source)
    except UsageError as error:
        raise error if str(error).startswith(source) else UsageError(f"{source}: {error}") from error


def _pool(table: dict[str, Any], source: str) -> Pool:
    defaults, workers = table.pop("defaults", {}), table.pop("workers", [])
    _check_keys(table, {*PoolSettings.model_fields, "defaults", "workers"}, source, "pool")
    _check_keys(_table(defaults, source, "pool.defaults"), WorkerEntry.model_fields, source, "pool.defaults")
    if not isinstance(workers, list) or not all(isinstance(worker, dict) for worker in workers):
        raise UsageError(f"{source}: workers are tables: write [[pool.workers]] above each")
    settings = _build(PoolSettings, {"name": Path(source).stem, **table}, source, "pool")
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

    _check_keys(fields, WorkerEntry.model_fields, source, where)
    for name, model in _NESTED.items():
        if name in fields:
            place = f"{where}, {name}"
            _check_keys(_table(fields[name], source, place), model.model_fields, source, place)
    entry: WorkerEntry = _build(WorkerEntry, fields, source, where)
    check_provider(entry)
    return entry


def _build(model: type[BaseModel], fields: dict[str, Any], source: str, where: str) -> Any:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"]))
        said = first["msg"].removeprefix("Value error, ")
        reason = "is missing" if first["type"] == "missing" else said[:1].lower() + said[1:]
        raise UsageError(f"{source}: {where}: {key + ': ' if key else ''}{reason}") from None


def _check_keys(table: Mapping[str, Any], known: Iterable[str], source: str, where: str) -> None:
    names = sorted(known)
    for key in table:
        if key not in names:
            place = f"{source}: {where}: " if where else f"{source}: "
            raise UsageError(f'{place}there is no key "{key}". {_cure(key, names)}')


def _cure(key: str, known: list[str]) -> str:
    if key in ("api_key", "key", "token"):
        return "Keys do not belong in files that are shared: set api_key_env to the name of an environment variable"
    near = get_close_matches(key, known, n=1)
    return f'Did you mean "{near[0]}"?' if near else f"Known: {', '.join(known)}"


def _table(value: Any, source: str, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{source}: {where} is a table, not {type(value).__name__}")
    return value


def _shipped() -> dict[str, Traversable]:
    folder = files("wfdsl") / "pools"
    return {Path(file.name).stem: file for file in folder.iterdir() if file.name.endswith(".toml")}


def _from_plugin(made: Any, name: str) -> Pool:
    if not isinstance(made, Pool):
        raise UsageError(f'the plug-in for the pool "{name}" returned {type(made).__name__}, not a Pool')
    return made


def _no_such_pool(name: str) -> str:
    known = pool_names()
    near = get_close_matches(name, known, n=1)
    meant = f' Did you mean "{near[0]}"?' if near else ""
    return f'there is no pool "{name}", and no file of this name.{meant} Known: {", ".join(known)}; or a .toml file'
