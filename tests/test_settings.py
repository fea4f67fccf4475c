"""Options are written once: defaults, limits, tables, flags and errors follow from the fields of a class."""

from __future__ import annotations

import argparse
import json
import re
import tomllib
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tests.docs.generated import page_text
from tests.docs.write_config import section
from wfdsl.cli import inputs
from wfdsl.cli.main import COMMANDS, _parser
from wfdsl.cli.options import add_config_options, add_options, experiment_of, values_of
from wfdsl.errors import UsageError
from wfdsl.experiment import CONFIGS, KeyLimits, read_experiment
from wfdsl.language.check import CheckConfig
from wfdsl.settings import Option, Table, from_table, option, options_of, to_table
from wfdsl.workers.entry import PoolSettings, WorkerEntry
from wfdsl_rl.training.config import TrainConfig

_MOST_KEYS, _MOST_FLAGS = 160, 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Table):
    ratio: float = option(0.5, "share", gt=0, le=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Table):
    """A table of a test's own: nothing else in the repository knows it."""

    limit: int | None = option(None, "calls in flight, of 100%", "--limit", ge=1)
    share: float = option(0.25, "share", "--share", gt=0, le=1)
    mode: Literal["auto", "on"] = option("auto", "when", "--mode")
    name: str = option("", "name", "--name")
    key: str | None = option(None, "variable", pattern="^[A-Z_]+$")
    parts: tuple[int, ...] = option((), "sizes", "--part", ge=0)
    on: bool = option(False, "whether", "--on")
    off: bool = option(True, "whether", "--no-off")
    inner: Inner = option(Inner, "more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed(Table):
    tasks: str = option(help="what is trained on", min_length=1)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 2.0}, "limit"),
        ({"limit": 10**30}, "limit"),
        ({"mode": "off"}, "mode"),
        ({"mode": None}, "mode"),
        ({"name": 3}, "name"),
        ({"key": "secret"}, "key"),
        ({"parts": [1]}, "parts"),
        ({"parts": (1, -1)}, "parts"),
        ({"on": 1}, "on"),
        ({"inner": 1}, "inner"),
        ({"share": 0}, "share"),
        ({"share": 1.5}, "share"),
        ({"share": float("nan")}, "share"),
        ({"share": float("inf")}, "share"),
        ({"share": "1"}, "share"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_the_name_of_its_option(options: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError) as error:
        Sample(**options)

    assert str(error.value).startswith(f"{field} must ")
    assert field != "limit" or "(got " in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("limt = 3", 'f: run has no key "limt". Did you mean limit?'),
        ("limit = 0", "f: run.limit "),
        ("inner = 3", "f: run.inner "),
        ("[inner]\nratio = 2", "f: run.inner.ratio "),
        ("[inner]\nratoi = 2", 'f: run.inner has no key "ratoi". Did you mean ratio?'),
        ('parts = "a"', "f: run.parts "),
        ('api_key = "sk-1"', "f: run has no key"),
    ],
)
def test_errors_of_a_table_say_where_and_never_a_text(text: str, place: str) -> None:
    with pytest.raises(UsageError) as error:
        from_table(Sample, tomllib.loads(text), "f: run")

    assert str(error.value).startswith(place)
    assert "sk-1" not in str(error.value)


def test_an_option_without_a_default_has_to_be_given() -> None:
    with pytest.raises(UsageError, match=r"^train\.tasks must be given"):
        from_table(Needed, {}, "train")


def test_a_table_gives_the_configuration_back() -> None:
    config = Sample(limit=3, mode="on", name="x", key="A", parts=(1, 2), on=True, off=False, inner=Inner(ratio=0.1))

    assert from_table(Sample, to_table(config), "f") == config


def sample(option: Option) -> Any:
    """A value that is allowed, and is not the default."""
    if option.type is bool:
        return not option.default
    if option.choices:
        return next(choice for choice in option.choices if choice != option.default)
    if option.item is not None:
        return (3,) if option.item is int else ("some",)
    if option.type is str:
        return "2030-01-01" if option.name == "expires" else "a" * 64 if option.name == "hash" else "SOME_NAME"
    least = option.limits.get("ge", option.limits.get("gt", 0))
    most = option.limits.get("le", 2 + least)
    return option.type(most if option.default != most else least)


def as_arguments(option: Option) -> list[str]:
    value = sample(option)
    assert option.flag is not None
    if option.type is bool:
        return [option.flag]
    return [option.flag, *map(str, value if option.item is not None else (value,))]


ALL: dict[str, type] = {**CONFIGS, "key": KeyLimits, "check": CheckConfig, "sample": Sample}
SOURCES = "\n".join(path.read_text("utf-8") for path in Path(inputs.__file__).parents[2].rglob("*.py"))
PLAIN = [(table, each) for table, config in ALL.items() for each in options_of(config) if not each.is_table]


@pytest.mark.parametrize(("table", "each"), PLAIN, ids=lambda part: getattr(part, "name", part))
def test_an_option_is_a_key_a_flag_an_argument_and_a_line_of_the_reference(table: str, each: Option) -> None:
    config, value = ALL[table], sample(each)
    needed = {"hash": "b" * 64} if table == "key" and each.name != "hash" else {}
    made = config(**{each.name: value}, **needed)
    parser = argparse.ArgumentParser()
    add_options(parser, config, table)

    assert from_table(config, to_table(made), table) == made
    assert any(line.startswith(f"| `{each.name}` |") for line in section(table, config).splitlines())
    assert table == "sample" or re.search(rf"\.{each.name}\b", SOURCES), "nothing reads it"
    if each.flag is not None:
        args = parser.parse_args(as_arguments(each))
        assert config(**values_of(args, table), **needed) == made
        assert each.help.replace("%%", "%") in " ".join(parser.format_help().split()) or len(each.help) > 60


@pytest.mark.parametrize(
    ("table", "each"), [one for one in PLAIN if one[0] in CONFIGS], ids=lambda p: getattr(p, "name", p)
)
def test_a_key_of_the_file_can_be_set_in_the_file_by_set_and_by_flag(tmp_path: Path, table: str, each: Option) -> None:
    value = sample(each)
    text = json.dumps(list(value) if isinstance(value, tuple) else value)
    (tmp_path / "exp.toml").write_text(f"[{table}]\n{each.name} = {text}\n")
    made = CONFIGS[table](**{each.name: value})
    parser = argparse.ArgumentParser()
    add_config_options(parser)
    add_options(parser, CONFIGS[table], table)

    assert getattr(read_experiment(tmp_path / "exp.toml"), table) == made
    assert getattr(read_experiment(None, [f"{table}.{each.name}={text}"]), table) == made
    assert f"| `{each.name}` |" in page_text("docs/reference/config.md")
    if each.flag is not None:
        assert getattr(experiment_of(parser.parse_args(as_arguments(each))), table) == made


def test_a_flag_is_read_with_its_type_and_its_limits(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser(prog="wfdsl")
    add_options(parser, Sample, "sample", share=0.75)

    given = values_of(parser.parse_args(["--limit", "2", "--part", "1", "--part", "2", "--on", "--no-off"]), "sample")
    assert Sample(**given) == Sample(limit=2, parts=(1, 2), on=True, off=False)
    assert "of 100%" in parser.format_help()
    assert "(default: 0.75)" in parser.format_help()
    for wrong in ("0", "2.5", "nan", "x", "9" * 30):
        with pytest.raises(SystemExit):
            parser.parse_args(["--limit", wrong])
        assert "argument --limit: " in capsys.readouterr().err


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedCheck(CheckConfig):
    """What is checked, with a new option."""

    most_words: int = option(9, "the most words", "--most-words", ge=1)


def test_a_new_option_of_checks_is_passed_on_by_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "CheckConfig", ExtendedCheck)
    parser = argparse.ArgumentParser()
    inputs.add_input_options(parser)

    given = inputs.check_options_of(parser.parse_args(["--most-words", "3", "--profile", "strict"]), None)

    assert ExtendedCheck(**given) == ExtendedCheck(most_words=3, profile="strict")


def test_no_two_options_of_the_file_have_the_same_flag_and_helps_are_phrases() -> None:
    flags = [each.flag for table, each in PLAIN if table in CONFIGS and each.flag is not None]

    assert sorted(flags) == sorted(set(flags))
    assert all(each.help and not each.help.endswith(".") for _, each in PLAIN)


def keys_of(table: Any) -> Iterator[str]:
    """The leaf keys of a table, whichever kind of class it is."""
    if issubclass(table, BaseModel):
        fields = [(name, field.annotation) for name, field in table.model_fields.items()]
    else:
        fields = [(each.name, each.type) for each in options_of(table)]
    for name, kind in fields:
        inner = [
            one
            for one in (kind, *typing.get_args(kind))
            if isinstance(one, type) and issubclass(one, BaseModel | Table)
        ]
        yield from (f"{name}.{key}" for each in inner for key in keys_of(each)) if inner else [name]


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    found = {flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= set().union(*(flags_of(inner) for inner in action.choices.values()))
    return found


def test_there_are_few_keys_and_flags() -> None:
    tables: dict[str, Any] = {
        **CONFIGS,
        "key": KeyLimits,
        "pool": PoolSettings,
        "worker": WorkerEntry,
        "train": TrainConfig,
    }
    keys = {name: list(keys_of(table)) for name, table in tables.items()}
    flags = set().union(*(flags_of(_parser([name])) for name in COMMANDS))

    total = sum(map(len, keys.values()))
    print(f"{total} keys: { ({name: len(each) for name, each in keys.items()}) }; {len(flags)} flags: {sorted(flags)}")
    assert total <= _MOST_KEYS
    assert len(flags) <= _MOST_FLAGS
