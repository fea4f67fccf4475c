"""Pools: workers by their index, from Python or by the name or file (TOML) under which they are found.

A pool is a value: indices are positions, and a subset keeps them unless asked to renumber. Clients and local servers
are built on first use and closed by `Pool.open()`.

Models have names instead of a file: `PROVIDER:MODEL`, several of them with commas, each with `@URL` if need be.
`openai:gpt-5,openai:gpt-5-mini` is a pool of two workers, `openai:llama3@http://localhost:11434/v1` one on a server of
your own. As for OpenAI's own client, the environment variable OPENAI_BASE_URL names the server of models without one.

A file has a table [pool], with [pool.defaults] for what its workers share, and one [[pool.workers]] for each worker, in
the order of their indices; or `use = "NAME"` instead of all that, which names another pool. The same file may hold the
other tables of an experiment (see `wfdsl.experiment`).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from wfdsl.errors import UsageError
from wfdsl.own_code import file_of, load_object
from wfdsl.protocols import Worker
from wfdsl.settings import (
    TABLES,
    build_model,
    closest,
    parse_toml,
    read_toml_file,
    relative_to,
    require_keys,
    require_table,
)
from wfdsl.workers.entry import SIMULATED, Limits, PoolSettings, Prices, WorkerEntry
from wfdsl.workers.function import ChatFunction, function_members
from wfdsl.workers.list_prices import with_list_prices
from wfdsl.workers.registry import OpenWorkers, build_worker, check_provider
from wfdsl.workers.text_policy import PolicedWorker

PLUGIN_GROUP: Final = "wfdsl.pools"
"""Entry points of plug-in pools: the object is called with the name asked for, and returns a `Pool`. The entry point
`gym` answers for every name that begins with `gym/`. Its method `names()`, if it has one, lists the names it knows."""
_NOT_BY_NAME: Final = ("conductor", "function", "scripted")
_MODELS: Final = re.compile(r"[A-Za-z][\w-]*:")
_SERVER: Final = re.compile(r"(.+?)@(https?://.+)", re.DOTALL)
_NO_LOOP: Final = frozenset[str]()
"""Stands for the event loop where none runs."""


class Pool:
    """Workers by their index. Immutable; iterating gives the entries in order of their indices."""

    def __init__(
        self,
        entries: Iterable[WorkerEntry] | Mapping[int, WorkerEntry],
        *,
        settings: PoolSettings | None = None,
        workers: Mapping[str, Worker] | None = None,
    ) -> None:
        """Number the entries from 0, or take indices as given. `workers` are ready-made ones, by name.

        Raises:
            UsageError: no worker at all, two of the same name, or a fallback that is not in the pool.
        """
        numbered = dict(entries) if isinstance(entries, Mapping) else dict(enumerate(entries))
        self._entries: dict[int, WorkerEntry] = dict(sorted(numbered.items()))
        self.settings = settings or PoolSettings()
        self._given = dict(workers or {})
        self._opened: WeakKeyDictionary[Any, OpenWorkers] = WeakKeyDictionary()
        """By the event loop that runs, since connections cannot move to another one."""
        _check_entries(self._entries.values(), self.settings.name)

    @classmethod
    def load(cls, path_or_name: str) -> Pool:
        """Read a pool file, make a pool of models (`openai:gpt-5,openai:gpt-5-mini`) or of your own code
        (`mine.py:pool`: a pool, an async function, or a list of them), or find a pool by its name.

        Names are those of shipped pools and of plug-ins.

        Raises:
            UsageError: there is no such file, model or name, or the file is not a valid pool.
        """
        if file_of(path_or_name) is not None:
            return _own_pool(path_or_name)
        if names_a_file(path_or_name):
            return _pool_of_tables(read_toml_file(Path(path_or_name), "pool file"), str(Path(path_or_name)))
        if lists_models(path_or_name):
            return cls(listed_entries(path_or_name), settings=PoolSettings(name=path_or_name))
        return _named_pool(path_or_name)

    @classmethod
    def from_workers(cls, members: Iterable[tuple[WorkerEntry, Worker]], *, name: str = "pool") -> Pool:
        """A pool of ready-made workers: anything that keeps the worker protocol."""
        pairs = list(members)
        workers = {entry.name: worker for entry, worker in pairs}
        return cls([entry for entry, _ in pairs], settings=PoolSettings(name=name), workers=workers)

    @classmethod
    def from_functions(
        cls,
        functions: Sequence[ChatFunction],
        names: Sequence[str] | None = None,
        descriptions: Sequence[str] | None = None,
    ) -> Pool:
        """A pool of functions `async def f(messages: list[dict]) -> str`, messages as in the OpenAI chat API.

        Names default to the functions' own. Calls are free: give entries with prices to `from_workers` otherwise.

        Raises:
            UsageError: a function is not async, or there are not as many names or descriptions as functions.
        """
        return cls.from_workers(function_members(functions, names, descriptions), name="functions")

    @property
    def name(self) -> str:
        """What the pool calls itself."""
        return self.settings.name

    @property
    def indices(self) -> tuple[int, ...]:
        """The worker indices that a workflow may use, ascending."""
        return tuple(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The workers' names, in order of their indices."""
        return tuple(entry.name for entry in self)

    @property
    def conductors(self) -> tuple[int, ...]:
        """The indices of workers that are Conductors themselves."""
        return self._where(lambda entry: entry.provider == "conductor")

    @property
    def labels(self) -> dict[int, str]:
        """What pictures call the workers: their names, and which of them are simulated."""
        simulated = {*self.tagged(SIMULATED), *self._where(lambda entry: entry.provider == "scripted")}
        return {at: f"{each.name} (simulated)" if at in simulated else each.name for at, each in self._entries.items()}

    def entry(self, index: int) -> WorkerEntry:
        """The entry of a worker.

        Raises:
            UsageError: the pool has no worker of this index.
        """
        if index not in self._entries:
            have = ", ".join(map(str, self._entries))
            raise UsageError(f'the pool "{self.name}" has no worker {index}; it has {have}')
        return self._entries[index]

    def find(self, name: str) -> int | None:
        """The index of the worker of this name."""
        return next(iter(self._where(lambda entry: entry.name == name)), None)

    def called(self, text: str) -> int | None:
        """The index of the worker that a text names, or whose index it is."""
        found = self.find(text)
        return int(text) if found is None and text.isdecimal() and int(text) in self.indices else found

    def tagged(self, tag: str) -> tuple[int, ...]:
        """The indices of the workers with this tag, ascending."""
        return self._where(lambda entry: tag in entry.tags)

    def subset(self, indices: Iterable[int], *, renumber: bool = False) -> Pool:
        """The pool of these workers only, under their own indices, or renumbered from 0 in the order given.

        Subsets share the clients and servers of the pool that they come from. A fallback that is not among the workers
        is left out: a workflow could reach a worker through it that it was not offered.

        Raises:
            UsageError: the pool has no worker of an index, or none is given.
        """
        chosen = {index: self.entry(index) for index in indices}
        names = {None, *(entry.name for entry in chosen.values())}
        for index, entry in chosen.items():
            if entry.fallback not in names:
                chosen[index] = entry.model_copy(update={"fallback": None})
        part = Pool(chosen.values() if renumber else chosen, settings=self.settings, workers=self._given)
        part._opened = self._opened
        return part

    def worker(self, index: int) -> Worker:
        """The worker itself, built once per event loop: one attempt per call, and the pool's text policy.

        Raises:
            UsageError: no worker of this index, a key or a package is missing, or a setting does not fit the provider.
        """
        entry, opened = self.entry(index), self._open_workers()
        if entry.name not in opened.workers:
            plain = self._given.get(entry.name) or opened.keep(build_worker(entry, opened))
            policed = PolicedWorker(plain, self.settings.max_reply_chars, strip_thinking=entry.strip_thinking)
            opened.workers[entry.name] = policed
        return opened.workers[entry.name]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Pool]:
        """Keep clients and servers up inside the block, and close them after the last open block.

        They start when first used. Blocks may nest and overlap, also those of subsets.
        """
        opened = self._open_workers()
        opened.users += 1
        try:
            yield self
        finally:
            opened.users -= 1
            if not opened.users:
                await opened.aclose()

    def _open_workers(self) -> OpenWorkers:
        try:
            loop: Any = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        key = loop or _NO_LOOP
        return self._opened.get(key) or self._opened.setdefault(key, OpenWorkers(loop))

    def _where(self, wanted: Callable[[WorkerEntry], bool]) -> tuple[int, ...]:
        return tuple(index for index, entry in self._entries.items() if wanted(entry))

    def __iter__(self) -> Iterator[WorkerEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        members = ", ".join(f"{index}={entry.name}" for index, entry in self._entries.items())
        return f"Pool({self.name!r}: {members})"

    def __reduce__(self) -> tuple[Callable[[], Pool], tuple[()]]:
        """Clients, servers and event loops stay behind when a pool travels to another process."""
        return partial(type(self), self._entries, settings=self.settings, workers=self._given), ()


def lists_models(text: str) -> bool:
    """Whether this is a list of models, not a pool's name."""
    return _MODELS.match(text) is not None


def listed_entries(text: str) -> list[WorkerEntry]:
    """The entries of a list of models.

    Raises:
        UsageError: a provider is not known, or an item is not of the form PROVIDER:MODEL.
    """
    entries: list[WorkerEntry] = []
    for item in text.split(","):
        entry = entry_of_model(item.strip())
        same = sum(each.model == entry.model for each in entries)
        entries.append(entry.model_copy(update={"name": f"{entry.name}#{same + 1}"}) if same else entry)
    return entries


def entry_of_model(text: str, **fields: Any) -> WorkerEntry:
    """The entry of `PROVIDER:MODEL` or `PROVIDER:MODEL@URL`; `fields` are further fields of an entry.

    Raises:
        UsageError: the provider is not known, or it is not of this form.
    """
    provider, _, model = text.partition(":")
    if not model or provider in _NOT_BY_NAME:
        raise UsageError(f"{text!r} does not name a model: write PROVIDER:MODEL, such as openai:gpt-5")
    found = _SERVER.fullmatch(model)
    model, url = found.groups() if found else (model, None)
    check_provider(WorkerEntry(name=model, provider=provider))
    plain = {"name": model, "provider": provider, "model": model, **_server(provider, url), **fields}
    return with_list_prices(build_model(WorkerEntry, plain, repr(text)))


def _server(provider: str, url: str | None) -> dict[str, Any]:
    """Where a model is asked, and with which key. A key of OpenAI goes to no other server, unless its user says so."""
    if url is not None or provider != "openai":
        return {"base_url": url}
    chosen = os.environ.get("OPENAI_BASE_URL", "").strip() or None
    key = "OPENAI_API_KEY" if os.environ.get("OPENAI_API_KEY", "").strip() else None
    return {"base_url": chosen, "api_key_env": key if chosen else None}


def pool_of_table(table: Mapping[str, Any], source: str) -> Pool:
    """The pool that a table [pool] describes, or names; `source` is what errors call the file.

    Raises:
        UsageError: it is not a valid pool.
    """
    try:
        return Pool.load(_used_pool(table, source)) if "use" in table else _described_pool(table, source)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from error


def parse_pool(text: str, source: str) -> Pool:
    """Read the text of a pool file; `source` is what errors call it.

    Raises:
        UsageError: the text is not a valid pool.
    """
    return _pool_of_tables(parse_toml(text, source), source)


def _pool_of_tables(tables: Mapping[str, Any], source: str) -> Pool:
    require_keys(tables, TABLES, source)
    if not isinstance(tables.get("pool"), dict):
        raise UsageError(f"{source}: there is no table [pool]; begin with [pool] and one [[pool.workers]] per worker")
    return pool_of_table(tables["pool"], source)


def _used_pool(table: Mapping[str, Any], source: str) -> str:
    """The name or file of the pool that a table [pool] uses."""
    used, rest = table["use"], table.keys() - {"use"}
    if not isinstance(used, str):
        raise UsageError(f"pool.use is the name or the file of a pool, not {type(used).__name__}")
    if rest:
        raise UsageError(f"pool: `use` takes a whole pool as it is: leave out {', '.join(sorted(rest))}")
    found = relative_to(source, used)
    other = read_toml_file(Path(found), "pool file").get("pool") if names_a_file(found) else None
    if isinstance(other, dict) and "use" in other:  # so that nothing can go round in a circle
        raise UsageError(f"pool.use names {found}, which only uses another pool: name that one")
    return found


def _described_pool(table: Mapping[str, Any], source: str) -> Pool:
    table = dict(table)
    defaults, workers = table.pop("defaults", {}), table.pop("workers", [])
    require_keys(table, {*PoolSettings.model_fields, "defaults", "use", "workers"}, "pool")
    require_keys(require_table(defaults, "pool.defaults"), WorkerEntry.model_fields, "pool.defaults")
    if not isinstance(workers, list) or not all(isinstance(worker, dict) for worker in workers):
        raise UsageError("workers are tables: write [[pool.workers]] above each")
    if isinstance(table.get("conductor"), str):
        table["conductor"] = relative_to(source, table["conductor"])
    settings = build_model(PoolSettings, {"name": Path(source).stem, **table}, "pool")
    places = [f'worker {n} ("{each["name"]}")' if "name" in each else f"worker {n}" for n, each in enumerate(workers)]
    entries = [build_entry({**defaults, **each}, place) for each, place in zip(workers, places, strict=True)]
    return Pool(map(with_list_prices, entries), settings=settings)


def build_entry(fields: Mapping[str, Any], place: str) -> WorkerEntry:
    """An entry from plain values, as a file has them; `place` is what errors call it.

    Raises:
        UsageError: a key is not known, a value does not fit, or the provider is not known.
    """
    require_keys(fields, WorkerEntry.model_fields, place)
    for name, model in (("limits", Limits), ("prices", Prices)):
        if name in fields:
            nested = f"{place}, {name}"
            require_keys(require_table(fields[name], nested), model.model_fields, nested)
    entry: WorkerEntry = build_model(WorkerEntry, fields, place)
    check_provider(entry)
    return entry


def names_a_file(path_or_name: str) -> bool:
    """Whether this is the path of a file, not the name of a pool."""
    return path_or_name.endswith(".toml") or ("\0" not in path_or_name and Path(path_or_name).is_file())


def shipped_pools() -> dict[str, Traversable]:
    """The files of the pools that come with this package, by the pools' names."""
    folder = files("wfdsl") / "pools"
    return {Path(file.name).stem: file for file in folder.iterdir() if file.name.endswith(".toml")}


def pool_names() -> tuple[str, ...]:
    """The names that `Pool.load` knows: shipped pools first, then those of plug-ins, which are imported for this."""
    plugins = sorted(entry_points(group=PLUGIN_GROUP), key=lambda plugin: plugin.name)
    return (*sorted(shipped_pools()), *(name for plugin in plugins for name in _names_of(plugin)))


def _named_pool(name: str) -> Pool:
    """The shipped pool of this name, or a plug-in's."""
    shipped = shipped_pools().get(name)
    if shipped is not None:
        return parse_pool(shipped.read_text(encoding="utf-8"), f"{name}.toml")
    for plugin in entry_points(group=PLUGIN_GROUP, name=name.partition("/")[0]):
        made = load_object(plugin.value, installed=True)(name)
        if not isinstance(made, Pool):
            raise UsageError(f'the plug-in for the pool "{name}" returned {type(made).__name__}, not a Pool')
        return made
    known = pool_names()
    meant = f"Did you mean {near}? " if (near := closest(name, known)) else ""
    listed = f"{meant}Known: {', '.join(known)}; or a .toml file, or PROVIDER:MODEL"
    raise UsageError(f'there is no pool "{name}", and no file of this name. {listed}')


def _names_of(plugin: EntryPoint) -> tuple[str, ...]:
    """The names that a plug-in lists; its own where it lists none, or cannot be loaded, which using it will say."""
    try:
        listed = getattr(load_object(plugin.value, installed=True), "names", None)
    except UsageError:
        listed = None
    return (plugin.name,) if listed is None else tuple(listed())


def _own_pool(name: str) -> Pool:
    found = load_object(name)
    functions = found if isinstance(found, list) else [found]
    if isinstance(found, Pool):
        return found
    if not all(callable(each) for each in functions):
        raise UsageError(f"{name}: must be a pool, an async function or a list of them (got {type(found).__name__})")
    return Pool.from_functions(functions)


def _check_entries(entries: Iterable[WorkerEntry], pool: str) -> None:
    named: dict[str, WorkerEntry] = {}
    accounts: dict[str | None, WorkerEntry] = {}
    for entry in entries:
        if not isinstance(entry, WorkerEntry):
            raise UsageError(
                f"a Pool is made of WorkerEntry values (got {entry!r}); for models by name write "
                'Pool.load("openai:gpt-5"), for functions Pool.from_functions([...])'
            )
        if entry.name in named:
            raise UsageError(f'the pool "{pool}" has two workers called "{entry.name}": names must differ')
        named[entry.name], first = entry, accounts.setdefault(entry.limits.account, entry)
        if first.limits != entry.limits and entry.limits.account is not None:
            raise UsageError(
                f'the workers "{first.name}" and "{entry.name}" of the pool "{pool}" share the account '
                f'"{entry.limits.account}", but not its limits; write the same limits for both'
            )
    if not named:
        raise UsageError(f'the pool "{pool}" has no workers: give it at least one [[pool.workers]]')
    for entry in named.values():
        others = [name for name in named if name != entry.name]
        if entry.fallback is not None and entry.fallback not in others:
            raise UsageError(
                f'worker "{entry.name}" of the pool "{pool}" falls back on "{entry.fallback}", '
                f"which is not another worker of the pool; there is: {', '.join(others) or 'none'}"
            )
