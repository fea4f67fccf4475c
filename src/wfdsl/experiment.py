"""The configuration file: the tables of one TOML file, such as [pool] and [conductor], with settings over them.

A later source wins: the default, then the file, then each setting in its order. Relative paths in a file are relative
to the file; relative paths in settings are relative to the current folder. The classes of the tables say which keys
there are (`wfdsl.config`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from wfdsl.conductor.config import ConductorConfig
from wfdsl.config import OptionField, check_options, did_you_mean, from_table, from_toml, option, options_of
from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import UNLIMITED, Budget
from wfdsl.interpreter.config import RunConfig, RunRequest
from wfdsl.interpreter.tools import MAX_TOOL_ROUNDS, ToolSteps
from wfdsl.own_code import file_of
from wfdsl.toml_file import TABLES, read_toml_file, relative_to, require_keys, require_table, require_tables

if TYPE_CHECKING:  # start-up time: the flags of a command are made of these tables, without a pool
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.workers.pool import Pool

DEFAULT_POOL: Final = "local"
_USE: Final = "pool.use"
_PROVIDERS_OF_PATHS: Final = ("local", "transformers")
"""`PROVIDER:PATH` is a path, too."""
_POOL_TEXTS: Final = ("use", "name", "description", "conductor")
_MODELS: Final = "models"
"""The table in [serve] with a table for each model."""
_OF_MODELS: Final = ("description", "tools", "max_tool_rounds", "side_requests", "context_window")
"""Keys of [serve] that each model may have for itself."""
_TABLES_OF_MODELS: Final = ("pool", "conductor", "budget", "run")
"""Tables of the file that each model may change for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(RunConfig):
    """The table [run]: how each workflow is run, how many questions at a time, and whether calls are kept."""

    parallel: int = option(
        4, help="questions at a time, where there are many", flag="--parallel", metavar="N", minimum=1
    )
    journal: bool = option(
        default=True, help="keep calls in the journal (without it, a run cannot be resumed)", flag="--no-journal"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The table [serve]: where the server listens, and what it allows."""

    host: str = option("127.0.0.1", help="the address to listen on", flag="--host", metavar="ADDRESS", minimum=1)
    port: int = option(
        8600, help="the port to listen on; 0 takes a free one", flag="--port", metavar="N", minimum=0, maximum=65535
    )
    keys: str | None = option(
        None, help="a file with the hashes of the API keys that are accepted", flag="--keys", metavar="FILE", path=True
    )
    max_requests: int = option(
        64, help="requests answered at a time; more are refused", flag="--max-requests", metavar="N", minimum=1
    )
    max_body_bytes: int = option(
        4_194_304, help="the largest request, in bytes", flag="--max-body-bytes", metavar="N", minimum=1
    )
    receive_s: float = option(
        60.0,
        help="seconds in which the body of a request has to come",
        flag="--receive",
        metavar="S",
        above=0,
    )
    drain_s: float = option(
        30.0, help="seconds that requests in progress have after SIGTERM", flag="--drain", metavar="S", minimum=0
    )
    reasoning: Literal["reasoning_content", "reasoning"] = option(
        "reasoning_content", help="the field of a stream that says what happens", flag="--reasoning"
    )
    tools: ToolSteps = option("answer", help="which steps may call a client's tools", flag="--tools")
    max_tool_rounds: int = option(
        MAX_TOOL_ROUNDS,
        help="how often a step may call a client's tools; then it has to answer",
        flag="--max-tool-rounds",
        metavar="N",
        minimum=1,
    )
    side_requests: Literal["worker", "conductor"] = option(
        "worker",
        help="what answers requests of chat programs for titles, tags and follow-up questions: the cheapest worker, or "
        "the Conductor as any other",
        flag="--side-requests",
    )
    context_window: int | None = option(
        None,
        help="tokens of a request and its answer, as the list of models says; without it, the least of the workers'",
        flag="--context-window",
        metavar="N",
        minimum=1,
    )
    description: str | None = option(
        None,
        help="what the list of models says of the Conductor",
        flag="--description",
        metavar="TEXT",
        minimum=1,
        default_text="which Conductor it is, and its pool",
    )
    log: Literal["text", "json"] = option("text", help="how the lines of the log are written", flag="--log")
    log_texts: bool = option(
        default=False, help="log questions and answers, which nothing else does", flag="--log-texts"
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLimits:
    """One API key: its table in the file that `[serve] keys` names, under the key's name."""

    hash: str = option(help="the SHA-256 of the key", pattern="[0-9a-f]{64}")
    created: str = option("", help="the day on which it was made")
    expires: str = option(
        "",
        help="the day from which it is refused, in UTC, as 2027-01-31; without it, it does not expire",
        flag="--expires",
        metavar="DAY",
        pattern=r"|\d{4}-\d{2}-\d{2}",
    )
    usd: float | None = option(
        None, help="most US dollars that its requests may cost in a period", flag="--usd", metavar="USD", minimum=0
    )
    per: Literal["day", "month", "ever"] = option(
        "month", help="the period of --usd, by the calendar of UTC", flag="--per"
    )
    requests_per_minute: int | None = option(
        None, help="most requests in any minute", flag="--requests-per-minute", metavar="N", minimum=1
    )
    models: tuple[str, ...] = option(
        (), help="a model that its requests may name; may be repeated; without it, all of them", flag="--model"
    )
    evaluation: bool = option(
        default=False, help="for measuring: titles and the like are answered by the Conductor too", flag="--evaluation"
    )
    metrics: bool = option(default=False, help="it may read the metrics", flag="--metrics")

    def __post_init__(self) -> None:
        check_options(self)


CONFIGS: Final[Mapping[str, type]] = {
    "conductor": ConductorConfig,
    "budget": Budget,
    "run": RunSettings,
    "serve": ServeSettings,
}
"""The configuration classes of the tables."""


PROTOCOLS: Final[Mapping[str, Mapping[str, Any]]] = {
    "paper": {
        "conductor.access": "binary",
        "conductor.profile": "strict",
        "conductor.reasks": 0,
        "conductor.max_rounds": 0,
        "run.question_for": "first",
    }
}
"""Settings that belong together. `paper`: what differs from the defaults in the main results of arXiv 2512.04388."""


class Setting(NamedTuple):
    """A value for one key that is given outside the file: on the command line, or by a program."""

    key: str
    """The table and the keys in it, with dots, such as `conductor.max_rounds`."""
    value: Any
    place: str
    """What errors call it, such as `--max-rounds`."""
    text: str | None = None
    """What was written, if the value was read from a text; for keys whose values are texts this is the value."""

    @classmethod
    def parse(cls, assignment: str) -> Setting:
        """The setting that `KEY=VALUE` says. The value is written as in TOML; anything else is a text.

        Raises:
            UsageError: it is not of this form.
        """
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not equals or not all(part.strip() for part in key.split(".")):
            raise UsageError(f"--set {assignment!r}: write TABLE.KEY=VALUE, such as conductor.max_rounds=2")
        if "." not in key:
            raise UsageError(f"--set {key}: there is no table: write TABLE.KEY=VALUE, such as conductor.max_rounds=2")
        return cls(key, _value(text.strip()), f"--set {key}", text.strip())


def run_options(config: RunConfig, *, without: Collection[str] = ()) -> RunOptions:
    """The options of a configuration by name, as `wfdsl.run` and policies take them; None is left out."""
    return cast("RunOptions", {name: value for name, value in config.manifest().items() if name not in without})


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is run and how."""

    pool: Pool | None = None
    """The workers; None if nothing names any."""
    pool_name: str | None = None
    """The name, or the file, with which `Pool.load` finds the same workers; None if settings have changed them."""
    conductor: ConductorConfig = field(default_factory=ConductorConfig)
    """The table [conductor]."""
    budget: Budget = UNLIMITED
    """The table [budget]."""
    run: RunSettings = field(default_factory=RunSettings)
    """The table [run]: a `RunConfig` with the keys `parallel` and `journal`."""
    serve: ServeSettings = field(default_factory=ServeSettings)
    """The table [serve]."""
    models: Mapping[str, Experiment] = field(default_factory=lambda: MappingProxyType({}))
    """The tables [serve.models.NAME]: what each model of a server runs. Each has the whole file, with its own keys."""
    train: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The trainer's table, unchanged."""

    def with_pool(self, default: str = DEFAULT_POOL) -> tuple[Pool, str | None]:
        """The workers and their name; the default pool if nothing names any."""
        if self.pool is not None:
            return self.pool, self.pool_name
        from wfdsl.workers.pool import Pool  # noqa: PLC0415  (start-up time)

        return Pool.load(default), default


def read_experiment(path: str | PathLike[str] | None = None, settings: Iterable[str | Setting] = ()) -> Experiment:
    """The experiment that a file describes; without a file, what the settings and the defaults say.

    Args:
        path: A TOML file.
        settings: What overrides the file: texts such as `"conductor.max_rounds=2"`, with the value as in TOML.

    Raises:
        UsageError: the file cannot be read, a key is not known, or a value does not fit.
    """
    tables = {} if path is None else _read_tables(Path(path))
    models = tables["serve"].pop(_MODELS, {}) if path is not None and "serve" in tables else {}
    given = [Setting.parse(each) if isinstance(each, str) else each for each in settings]
    found = {
        name: _of_model(require_table(own, f"{path}: serve.models.{name}"), name, str(path), tables, given)
        for name, own in require_table(models, f"{path}: serve.models").items()
    }
    return replace(_experiment(tables, path, given), models=MappingProxyType(found))


def _experiment(tables: dict[str, Any], path: str | PathLike[str] | None, given: list[Setting]) -> Experiment:
    source, tables = "the defaults" if path is None else str(path), deepcopy(tables)
    for setting in given:
        _put(tables, setting)
    pool, name = _pool(tables.get("pool"), source, path, given)
    built = {table: _built(config, tables.get(table, {}), f"{source}: {table}") for table, config in CONFIGS.items()}
    train = MappingProxyType(tables.get("train", {}))
    return Experiment(pool=pool, pool_name=name, train=train, **built)


def _of_model(own: dict[str, Any], name: str, source: str, tables: dict[str, Any], given: list[Setting]) -> Experiment:
    """The experiment of one model of a server: the file, with the model's own keys over it, and settings over these.

    Raises:
        UsageError: a key is not one of a model, or a value does not fit.
    """
    try:
        for key in own:
            if key not in (*_OF_MODELS, *_TABLES_OF_MODELS):
                known = (*_OF_MODELS, *_TABLES_OF_MODELS)
                raise UsageError(f'there is no key "{key}". {did_you_mean(key, known)}')
        return _experiment(tables, source, [*_settings(own, source), *given])
    except UsageError as error:
        raise UsageError(f"{source}: serve.models.{name}: {error}") from error


def _settings(own: Mapping[str, Any], source: str) -> Iterator[Setting]:
    """The keys of a model as settings of the tables of the file.

    Raises:
        UsageError: a table has something else, or the pool is not used by its name.
    """
    for key, value in own.items():
        if key in _OF_MODELS:
            yield Setting(f"serve.{key}", value, key)
            continue
        table = require_table(value, key)
        if key == "pool":
            if list(table) != ["use"]:
                raise UsageError('pool has one key, "use": the name or the file of a pool')
            table = {"use": _path(table["use"], source)}
        else:
            _require_own(key, table)
            table = _with_paths(CONFIGS[key], table, source)
        yield from _leaves(key, table)


def _require_own(name: str, table: Mapping[str, Any]) -> None:
    """Refuse keys that hold for the whole server.

    Raises:
        UsageError: there is one.
    """
    for key in ("journal", "parallel") if name == "run" else ():
        if key in table:
            raise UsageError(f"run.{key} holds for the whole server: put it into [run]")


def _leaves(key: str, value: Any) -> Iterator[Setting]:
    """A value as a setting; a table as one for each value in it."""
    if not isinstance(value, Mapping):
        yield Setting(key, value, key)
        return
    for inner, each in value.items():
        yield from _leaves(f"{key}.{inner}", each)


def _read_tables(path: Path) -> dict[str, Any]:
    """The tables of a file, with its relative paths resolved."""
    tables = read_toml_file(path, "configuration file")
    require_tables(tables, str(path))
    for name, table in tables.items():
        require_table(table, f"{path}: {name}")
        if name in CONFIGS:
            tables[name] = _with_paths(CONFIGS[name], table, str(path))
    return tables


def _with_paths(config: type, table: dict[str, Any], source: str) -> dict[str, Any]:
    paths = [each.name for each in options_of(config) if each.option.path]
    return {key: _path(value, source) if key in paths else value for key, value in table.items()}


def _path(value: Any, source: str) -> Any:
    if not isinstance(value, str):
        return value  # building the configuration says what is wrong
    provider, colon, rest = value.partition(":")
    if colon and provider in _PROVIDERS_OF_PATHS:
        return f"{provider}:{relative_to(source, rest)}"
    return relative_to(source, value)


def _built(config: type, table: dict[str, Any], place: str) -> Any:
    require_keys(table, [each.name for each in options_of(config)], place)
    found: Any = from_table(config, table, place)
    return UNLIMITED if found == UNLIMITED else found  # a run does not track this very value


def _put(tables: dict[str, Any], setting: Setting) -> None:
    """Put a setting into the tables.

    Raises:
        UsageError: it names a table or key that does not exist, or its value does not fit.
    """
    name, *keys = (part.strip() for part in setting.key.split("."))
    if name not in TABLES:
        raise UsageError(f'{setting.place}: there is no table "{name}". {did_you_mean(name, TABLES)}')
    if (name, keys[0]) == ("serve", _MODELS):
        raise UsageError(f"{setting.place}: serve.models are set in the file")
    if name in CONFIGS:
        found = _field(CONFIGS[name], name, keys, setting)
        value = _as_text(setting) if found.type is str else setting.value
        from_toml(found, value, setting.place)
    if setting.key == _USE:
        tables["pool"] = {}
    table = tables.setdefault(name, {})
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            where = "pool.workers are set in the file" if key == "workers" else f"{key} is not a table"
            raise UsageError(f"{setting.place}: {where}")
    is_text = (found.type is str) if name in CONFIGS else name == "pool" and keys[-1] in _POOL_TEXTS
    table[keys[-1]] = _as_text(setting) if is_text else setting.value


def _field(config: type, table: str, keys: list[str], setting: Setting) -> OptionField:
    known = {each.name: each for each in options_of(config)}
    if keys[0] not in known:
        raise UsageError(f'{setting.place}: [{table}] has no key "{keys[0]}". {did_you_mean(keys[0], known)}')
    found = known[keys[0]]
    if len(keys) > 1 and found.is_table:
        return _field(found.type, f"{table}.{keys[0]}", keys[1:], setting)
    if len(keys) > 1:
        raise UsageError(f"{setting.place}: {table}.{keys[0]} is not a table: write {table}.{keys[0]}=VALUE")
    return found


def _as_text(setting: Setting) -> Any:
    """What was written, for keys whose values are texts; a text in quotes is what TOML makes of it."""
    return setting.value if setting.text is None or isinstance(setting.value, str) else setting.text


def _value(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return found["value"] if len(found) == 1 else text  # a line break in the text could begin another key


def _pool(
    table: dict[str, Any] | None, source: str, path: str | PathLike[str] | None, given: list[Setting]
) -> tuple[Pool | None, str | None]:
    """The workers, and the name under which they are found again."""
    if table is None:
        return None, None
    from wfdsl.workers.pool import Pool, pool_of_table  # noqa: PLC0415  (start-up time)

    settings = [setting for setting in given if setting.key.partition(".")[0] == "pool"]
    used = next((setting for setting in reversed(settings) if setting.key == _USE), None)
    others = [setting for setting in settings if setting.key != _USE]
    if used is not None and others:
        raise UsageError(f"{others[0].place}: {used.place} takes a whole pool as it is: leave one of them out")
    if used is not None:
        return Pool.load(table["use"]), found_anywhere(table["use"])
    place = others[0].place if others and path is None else source
    return pool_of_table(table, place), None if others or path is None else found_anywhere(str(path))


def pool_of_run(request: RunRequest) -> Pool:
    """The pool that a run was started on, found again by its name.

    Raises:
        UsageError: it was not loaded by name, or cannot be loaded any more.
    """
    from wfdsl.workers.pool import Pool  # noqa: PLC0415  (start-up time)

    name = request.origin.get("pool")
    if name is None:
        raise UsageError(f"the run's pool {request.pool!r} was not loaded by name: give it with --pool")
    return Pool.load(name)


def found_anywhere(name: str) -> str:
    """The name of a pool or a model as it is found from every folder: the path of a file is absolute."""
    from wfdsl.workers.pool_file import names_a_file  # noqa: PLC0415  (start-up time)

    return str(Path(name).absolute()) if names_a_file(name) or file_of(name) is not None else name
