"""An experiment: the tables of one TOML file, with what was set elsewhere put over them.

What is set later goes before: the default, the file, then each setting in its order. Paths in a file may be relative
to the file; those of settings are relative to the current folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from wfdsl.conductor.config import ConductorConfig
from wfdsl.config import options_of
from wfdsl.errors import UsageError
from wfdsl.experiment.setting import Setting
from wfdsl.experiment.tables import MODELS, BudgetTable, RunTable
from wfdsl.toml_file import did_you_mean, first_problem, read_toml_file, require_keys, require_table
from wfdsl.workers.pool import Pool, pool_of_table
from wfdsl.workers.pool_file import TABLES, relative_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

DEFAULT_POOL: Final = "local"
_PATHS: Final = tuple(field.name for field in options_of(ConductorConfig) if field.option.path)
"""Keys of [conductor] whose values may be paths."""
_CONFIGS: Final = {"conductor": {field.name: field for field in options_of(ConductorConfig)}}
"""Tables that are configuration classes, with their options."""
_USE: Final = "pool.use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is run and how."""

    pool: Pool | None = None
    """The workers; None where nothing names any."""
    pool_name: str | None = None
    """Under which name or file `Pool.load` finds the same workers; None where settings have changed them."""
    conductor: ConductorConfig = field(default_factory=ConductorConfig)
    budget: BudgetTable = field(default_factory=BudgetTable)
    run: RunTable = field(default_factory=RunTable)
    train: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The trainer's table, as it stands."""

    def with_pool(self, default: str = DEFAULT_POOL) -> tuple[Pool, str | None]:
        """The workers and their name; those of the default pool where nothing names any."""
        return (Pool.load(default), default) if self.pool is None else (self.pool, self.pool_name)


def read_experiment(path: str | PathLike[str] | None = None, settings: Iterable[str | Setting] = ()) -> Experiment:
    """The experiment that a file describes; without a file, what the settings and the defaults say.

    Args:
        path: A TOML file.
        settings: What goes before the file: texts such as `"conductor.max_rounds=2"`, with the value as in TOML.

    Raises:
        UsageError: the file cannot be read, a key is not known, or a value does not fit.
    """
    source = "the defaults" if path is None else str(path)
    tables = {} if path is None else _tables(Path(path))
    given = [Setting.parse(each) if isinstance(each, str) else each for each in settings]
    if path is not None:
        _resolve(tables, source)
    for setting in given:
        _put(tables, setting)
    places = {setting.key: setting.place for setting in given}
    pool, name = _pool(tables.get("pool"), source, path, given)
    if pool is not None and pool.settings.conductor is not None:
        tables["conductor"] = {"model": pool.settings.conductor, **tables.get("conductor", {})}
    return Experiment(
        pool=pool,
        pool_name=name,
        train=MappingProxyType(tables.get("train", {})),
        conductor=_configured(ConductorConfig, "conductor", tables.get("conductor", {}), source, places),
        **{table: _built(table, tables.get(table, {}), source, places) for table in MODELS},
    )


def _tables(path: Path) -> dict[str, Any]:
    tables = read_toml_file(path, "configuration file")
    require_keys(tables, TABLES, str(path))
    for name, table in tables.items():
        require_table(table, f"{path}: {name}")
    return tables


def _resolve(tables: dict[str, Any], source: str) -> None:
    """Let paths of the file start from where the file is."""
    table = tables.get("conductor", {})
    for key in _PATHS:
        if isinstance(table.get(key), str):
            provider, colon, rest = table[key].partition(":")
            inner = (
                f"{provider}:{relative_to(source, rest)}" if colon and provider in ("local", "transformers") else None
            )
            table[key] = inner or relative_to(source, table[key])


def _put(tables: dict[str, Any], setting: Setting) -> None:
    """Put a setting into the tables.

    Raises:
        UsageError: it names a table or key that there is not.
    """
    name, *keys = (part.strip() for part in setting.key.split("."))
    if name not in TABLES:
        raise UsageError(f'{setting.place}: there is no table "{name}". {did_you_mean(name, TABLES)}')
    if name in MODELS or name in _CONFIGS:
        _require_known(name, keys, setting)
    if setting.key == _USE:
        tables["pool"] = {}
    table = tables.setdefault(name, {})
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            where = "pool.workers are set in the file" if key == "workers" else f"{key} is no table"
            raise UsageError(f"{setting.place}: {where}")
    is_text = setting.text is not None and _takes_a_text(name, keys[-1])
    quoted = isinstance(setting.value, str)
    table[keys[-1]] = setting.text if is_text and not quoted else setting.value


def _require_known(name: str, keys: list[str], setting: Setting) -> None:
    known: Iterable[str] = _CONFIGS[name] if name in _CONFIGS else MODELS[name].model_fields
    if keys[0] not in known:
        raise UsageError(f'{setting.place}: there is no key "{keys[0]}" in [{name}]. {did_you_mean(keys[0], known)}')
    if len(keys) > 1:
        raise UsageError(f"{setting.place}: {name}.{keys[0]} is no table: write {name}.{keys[0]}=VALUE")


def _takes_a_text(table: str, key: str) -> bool:
    """Whether a key's values are texts, so that `conductor.model=7` and `pool.use=true` name something."""
    if table in _CONFIGS:
        return _CONFIGS[table][key].type is str
    if table in MODELS:
        return MODELS[table].model_fields[key].annotation in (str, str | None)
    return (table, key) in {("pool", "use"), ("pool", "name"), ("pool", "description"), ("pool", "conductor")}


def _configured(
    config: type[ConductorConfig], name: str, table: dict[str, Any], source: str, places: Mapping[str, str]
) -> ConductorConfig:
    """The configuration that a table describes; `places` says which keys were set elsewhere, and where."""
    require_keys(table, _CONFIGS[name], f"{source}: {name}")
    values: dict[str, Any] = {}
    for key, value in table.items():
        field = _CONFIGS[name][key]
        given = value if field.item is None else tuple(value) if isinstance(value, list | tuple) else (value,)
        problem = field.problem(given)
        if problem is not None:
            raise UsageError(f"{places.get(f'{name}.{key}', f'{source}: {name}.{key}')} {problem}")
        values[key] = given
    return config(**values)


def _built(name: str, table: dict[str, Any], source: str, places: Mapping[str, str]) -> Any:
    require_keys(table, MODELS[name].model_fields, f"{source}: {name}")
    try:
        return MODELS[name].model_validate(table)
    except ValidationError as error:
        key, reason = first_problem(error)
        place = places.get(f"{name}.{key.partition('.')[0]}", f"{source}: {name}.{key}")
        raise UsageError(f"{place}: {reason}") from None


def _pool(
    table: dict[str, Any] | None, source: str, path: str | PathLike[str] | None, given: list[Setting]
) -> tuple[Pool | None, str | None]:
    """The workers, and the name under which they are found again."""
    settings = [setting for setting in given if setting.key.partition(".")[0] == "pool"]
    if table is None:
        return None, None
    used = next((setting for setting in reversed(settings) if setting.key == _USE), None)
    others = [setting for setting in settings if setting.key != _USE]
    if used is not None and others:
        raise UsageError(f"{others[0].place}: {used.place} takes a whole pool as it is: leave one of them out")
    if used is not None:
        return Pool.load(table["use"]), table["use"]
    place = others[0].place if others and path is None else source
    return pool_of_table(table, place), None if others or path is None else str(path)
