"""The configuration file: the tables of one TOML file, such as [pool] and [conductor], with settings over them.

A later source wins: the default, then the file, then each setting in its order. Relative paths in a file are relative
to the file; relative paths in settings are relative to the current folder. The classes of the tables say which keys
there are (`wfdsl.settings`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import UNLIMITED, Budget
from wfdsl.interpreter.config import RunConfig, RunRequest
from wfdsl.interpreter.tools import MAX_TOOL_ROUNDS, ToolSteps
from wfdsl.own_code import file_of
from wfdsl.settings import (
    TABLES,
    Table,
    did_you_mean,
    from_table,
    from_toml,
    not_default,
    option,
    options_of,
    read_toml_file,
    relative_to,
    require_keys,
    require_table,
    to_table,
)

if TYPE_CHECKING:  # start-up time: the flags of a command are made of these tables, without a pool
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.workers.pool import Pool

_USE: Final = "pool.use"
_PROVIDERS_OF_PATHS: Final = ("local", "transformers")
"""`PROVIDER:PATH` is a path, too."""
_POOL_TEXTS: Final = ("use", "name", "description", "conductor")
_NO_FILE: Final = "the defaults"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(RunConfig):
    """The table [run]: how each workflow is run, how many questions at a time, and whether calls are kept."""

    parallel: int = option(4, "questions at a time, where there are many", "--parallel", ge=1)
    journal: bool = option(True, "keep calls in the journal (without it, a run cannot be resumed)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings(Table):
    """The table [serve]: where the server listens, and what it allows."""

    host: str = option("127.0.0.1", "the address to listen on", "--host", metavar="ADDRESS", min_length=1)
    port: int = option(8600, "the port to listen on; 0 takes a free one", "--port", ge=0, le=65535)
    keys: str | None = option(None, "a file with the hashes of the API keys that are accepted", "--keys", path=True)
    max_requests: int = option(64, "requests answered at a time; more are refused", ge=1)
    max_body_bytes: int = option(4_194_304, "the largest request, in bytes", ge=1)
    receive_s: float = option(60.0, "seconds in which the body of a request has to come", gt=0)
    drain_s: float = option(30.0, "seconds that requests in progress have after SIGTERM", ge=0)
    tools: ToolSteps = option("answer", "which steps may call a client's tools")
    max_tool_rounds: int = option(
        MAX_TOOL_ROUNDS, "how often a step may call a client's tools; then it has to answer", ge=1
    )
    side_requests: Literal["worker", "conductor"] = option(
        "worker",
        "what answers requests of chat programs for titles, tags and follow-up questions: the cheapest worker, or "
        "the Conductor as any other",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingSettings(Table):
    """The table [grading]: what graded programs may import, and who judges replies that state no answer."""

    sandbox_packages: str | None = option(
        None,
        "a virtual environment, or a folder of packages, that graded programs may import",
        metavar="DIR",
        path=True,
    )
    judge: str | None = option(
        None,
        "the worker that judges replies which state no answer; without it they are wrong",
        min_length=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLimits(Table):
    """One API key: its table in the file that `[serve] keys` names, under the key's name."""

    hash: str = option(help="the SHA-256 of the key", pattern=r"^[0-9a-f]{64}$")
    created: str = option("", "the day on which it was made")
    expires: str = option(
        "",
        "the day from which it is refused, in UTC, as 2027-01-31; without it, it does not expire",
        "--expires",
        metavar="DAY",
        pattern=r"^(|\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))$",
    )
    usd: float | None = option(None, "most US dollars that its requests may cost in a period", "--usd", ge=0)
    per: Literal["day", "month", "ever"] = option("month", "the period of --usd, by the calendar of UTC")
    evaluation: bool = option(False, "for measuring: titles and the like are answered by the Conductor too")
    metrics: bool = option(False, "it may read the metrics")


CONFIGS: Final[Mapping[str, type]] = {
    "conductor": ConductorConfig,
    "budget": Budget,
    "run": RunSettings,
    "serve": ServeSettings,
    "grading": GradingSettings,
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
        if not equals or "." not in key or not all(part.strip() for part in key.split(".")):
            raise UsageError(f"--set {assignment!r}: write TABLE.KEY=VALUE, such as conductor.max_rounds=2")
        return cls(key, _value(text.strip()), f"--set {key}", text.strip())

    @property
    def as_text(self) -> Any:
        """What was written, for keys whose values are texts; a text in quotes is what TOML makes of it."""
        return self.value if self.text is None or isinstance(self.value, str) else self.text


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
    grading: GradingSettings = field(default_factory=GradingSettings)
    """The table [grading]."""
    train: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The trainer's table, unchanged."""

    def with_pool(self) -> tuple[Pool, str | None]:
        """The workers and their name; the pool `local` if nothing names any."""
        if self.pool is not None:
            return self.pool, self.pool_name
        from wfdsl.workers.pool import Pool  # noqa: PLC0415  (start-up time)

        return Pool.load("local"), "local"

    def require_pool(self) -> Pool:
        """The workers, where there is no default.

        Raises:
            UsageError: nothing names any.
        """
        if self.pool is None:
            raise UsageError("give --pool: the workers, a pool's name or file; `wfdsl pools list` lists the names")
        return self.pool


def read_experiment(
    path: str | PathLike[str] | None = None,
    settings: Iterable[str | Setting] = (),
    *,
    defaults: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Experiment:
    """The experiment that a file describes; without a file, what the settings and the defaults say.

    Args:
        path: A TOML file.
        settings: What overrides the file: texts such as `"conductor.max_rounds=2"`, with the value as in TOML.
        defaults: What holds instead of the usual defaults, by table and key.

    Raises:
        UsageError: the file cannot be read, a key is not known, or a value does not fit.
    """
    source = _NO_FILE if path is None else str(path)
    given = [Setting.parse(each) if isinstance(each, str) else each for each in settings]
    tables = {} if path is None else read_toml_file(Path(path), "configuration file")
    require_keys(tables, TABLES, source)
    for name, table in tables.items():
        require_table(table, f"{source}: {name}")
        for each in options_of(CONFIGS[name]) if name in CONFIGS else ():
            if each.path and isinstance(table.get(each.name), str):
                table[each.name] = _path(table[each.name], source)
    tables |= {name: {**own, **tables.get(name, {})} for name, own in defaults.items()}
    for setting in given:
        _put(tables, setting)
    pool, pool_name = _pool(tables.get("pool"), source, given)
    built: dict[str, Any] = {
        name: from_table(config, tables.get(name, {}), f"{source}: {name}") for name, config in CONFIGS.items()
    }
    if built["budget"] == UNLIMITED:
        built["budget"] = UNLIMITED  # a run does not track this very value
    return Experiment(pool=pool, pool_name=pool_name, train=MappingProxyType(tables.get("train", {})), **built)


def run_options(config: RunConfig, *, without: Collection[str] = ()) -> RunOptions:
    """The options of a configuration by name, as `wfdsl.run` and policies take them; None is left out."""
    return cast("RunOptions", {name: value for name, value in config.manifest().items() if name not in without})


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


def origin_of(name: str, config: ConductorConfig, pool_name: str | None) -> dict[str, str]:
    """Where a policy and its pool are found again, for resuming a run: what `RunRequest.origin` keeps.

    `name` is what `conductor_name` gives. Of a Conductor's options, those that are not the defaults are kept, as JSON.
    """
    if name.endswith(".wf"):
        found = {"file": str(Path(name).absolute())}
    else:
        found = {"solve": found_anywhere(name)}
        paths = [each.name for each in options_of(ConductorConfig) if each.path]
        changed = not_default(replace(config, model=None))
        options = {key: value for key, value in to_table(config).items() if key in changed}
        options |= {key: found_anywhere(options[key]) for key in paths if key in options}
        found |= {"conductor": json.dumps(options)} if options else {}
    return found if pool_name is None else {**found, "pool": pool_name}


def found_anywhere(name: str) -> str:
    """The name of a pool or a model as it is found from every folder: the path of a file is absolute."""
    from wfdsl.workers.pool import names_a_file  # noqa: PLC0415  (start-up time)

    return str(Path(name).absolute()) if names_a_file(name) or file_of(name) is not None else name


def _path(value: str, source: str) -> str:
    provider, colon, rest = value.partition(":")
    is_path = colon and provider in _PROVIDERS_OF_PATHS
    return f"{provider}:{relative_to(source, rest)}" if is_path else relative_to(source, value)


def _put(tables: dict[str, Any], setting: Setting) -> None:
    """Put a setting into the tables.

    Raises:
        UsageError: it names a table or key that does not exist, or its value does not fit.
    """
    name, *keys = (part.strip() for part in setting.key.split("."))
    if name not in TABLES:
        raise UsageError(f'{setting.place}: there is no table "{name}". {did_you_mean(name, TABLES)}')
    value = setting.value
    if name in CONFIGS:
        known = {each.name: each for each in options_of(CONFIGS[name])}
        require_keys({keys[0]: None}, known, f"{setting.place}: [{name}]")
        if len(keys) > 1:
            raise UsageError(f"{setting.place}: {name}.{keys[0]} is not a table: write {name}.{keys[0]}=VALUE")
        found = known[keys[0]]
        value = setting.as_text if found.type is str else value
        from_toml(found, value, setting.place)
    elif name == "pool" and keys[-1] in _POOL_TEXTS:
        value = setting.as_text
    table = tables.setdefault(name, {})
    if setting.key == _USE:
        table.clear()
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise UsageError(f"{setting.place}: {key} is not a table; workers of a pool are set in the file")
    table[keys[-1]] = value


def _value(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return found["value"] if len(found) == 1 else text  # a line break in the text could begin another key


def _pool(table: dict[str, Any] | None, source: str, given: list[Setting]) -> tuple[Pool | None, str | None]:
    """The workers, and the name under which they are found again."""
    if table is None:
        return None, None
    from wfdsl.workers.pool import Pool, pool_of_table  # noqa: PLC0415  (start-up time)

    own = [setting for setting in given if setting.key.startswith("pool.")]
    others = [setting.place for setting in own if setting.key != _USE]
    if len(others) == len(own):
        place = others[0] if others and source == _NO_FILE else source
        return pool_of_table(table, place), None if others else found_anywhere(source)
    if others:
        raise UsageError(f"{others[0]}: --pool takes a whole pool as it is: leave one of them out")
    return Pool.load(table["use"]), found_anywhere(table["use"])
