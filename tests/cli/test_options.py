"""An option is one field of a configuration class: its TOML key, flag, argument and line of the reference follow."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.docs.write_config import keys
from wfdsl.cli import inputs
from wfdsl.cli.options import add_arguments, add_config_options, add_options, experiment_of
from wfdsl.config import OptionField, check_options, from_table, option, options_of, to_table
from wfdsl.experiment import CONFIGS, read_experiment
from wfdsl.language.check import CheckConfig

WITHOUT_A_FLAG = {
    "conductor.efforts",
    "conductor.max_prose",
    "conductor.max_subtask",
    "conductor.grammar_tokens",
    "conductor.temperature",
    "run.longest_wait_s",
}
"""Options that only a file, `--set` and Python have."""

ALL = [(table, field) for table, config in CONFIGS.items() for field in options_of(config)]


def sample(field: OptionField) -> Any:
    """A value that is allowed, and is not the default."""
    if field.type is bool:
        return not field.default
    if field.choices:
        return next(choice for choice in field.choices if choice != field.default)
    if field.item is not None:
        return ("some",)
    if field.type is str:
        return "SOME_NAME"
    return field.type(max(2, field.option.minimum or 0) if field.default != 2 else 1)


def as_arguments(field: OptionField) -> list[str]:
    value = sample(field)
    assert field.option.flag is not None
    if field.type is bool:
        return [field.option.flag]
    return [field.option.flag, *map(str, value if field.item is not None else (value,))]


def parser_of_all() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add_config_options(parser)
    for table, config in CONFIGS.items():
        add_options(parser, config, table)
    return parser


PLAIN = [(table, field) for table, field in ALL if not field.is_table]
"""A table in a table has no value that a line could hold; tests/conductor/test_effort.py has the one there is."""


@pytest.mark.parametrize(("table", "field"), PLAIN, ids=lambda part: getattr(part, "name", part))
def test_an_option_is_a_key_a_flag_an_argument_and_a_line_of_the_reference(
    tmp_path: Path, table: str, field: OptionField
) -> None:
    value, config = sample(field), CONFIGS[table]
    plain = list(value) if isinstance(value, tuple) else value
    (tmp_path / "exp.toml").write_text(f"[{table}]\n{field.name} = {json.dumps(plain)}\n")

    by_argument = config(**{field.name: value})

    assert getattr(read_experiment(tmp_path / "exp.toml"), table) == by_argument
    assert getattr(read_experiment(None, [f"{table}.{field.name}={json.dumps(plain)}"]), table) == by_argument
    assert from_table(config, to_table(by_argument), table) == by_argument
    assert any(line.startswith(f"| `{field.name}` |") for line in section(table))
    if f"{table}.{field.name}" not in WITHOUT_A_FLAG:
        assert getattr(experiment_of(parser_of_all().parse_args(as_arguments(field))), table) == by_argument


def section(table: str) -> list[str]:
    """The lines about a table in the reference."""
    return keys().partition(f"### [{table}]\n")[2].partition("\n### ")[0].splitlines()


def test_only_these_options_have_no_flag() -> None:
    assert {f"{table}.{field.name}" for table, field in ALL if field.option.flag is None} == WITHOUT_A_FLAG


def test_no_two_options_have_the_same_flag() -> None:
    flags = [field.option.flag for _, field in ALL if field.option.flag is not None]

    assert sorted(flags) == sorted(set(flags))


@pytest.mark.parametrize("config", [*CONFIGS.values(), CheckConfig], ids=lambda config: config.__name__)
def test_the_help_of_an_option_is_a_phrase_without_a_full_stop(config: type) -> None:
    for field in options_of(config):
        assert field.option.help.strip(), field.name
        assert not field.option.help.endswith("."), field.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """A configuration with a new option, which is written down nowhere else."""

    share: float = option(0.5, help="share of the 100%", flag="--share", metavar="X", above=0, maximum=1)
    shuffle: bool = option(default=False, help="shuffle", flag="--shuffle")

    def __post_init__(self) -> None:
        check_options(self)


def test_adding_a_field_adds_its_flag_with_its_type_its_limits_and_its_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = argparse.ArgumentParser(prog="wfdsl")
    add_arguments(parser, Extended, share=0.25)

    assert parser.parse_args([]) == argparse.Namespace(share=0.25, shuffle=False)
    assert parser.parse_args(["--share", "1", "--shuffle"]) == argparse.Namespace(share=1.0, shuffle=True)
    assert "share of the 100% (default: 0.25)" in parser.format_help()
    with pytest.raises(SystemExit):
        parser.parse_args(["--share", "2"])
    assert "argument --share: must be at most 1 (got 2.0)" in capsys.readouterr().err


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedCheck(CheckConfig):
    """What is checked, with a new option."""

    most_words: int = option(9, help="the most words", flag="--most-words", metavar="N", minimum=1)


def test_a_new_option_of_checks_is_passed_on_by_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "CheckConfig", ExtendedCheck)
    parser = argparse.ArgumentParser()
    inputs.add_input_options(parser)

    given = inputs.check_options_of(parser.parse_args(["--most-words", "3", "--profile", "strict"]), None)

    assert ExtendedCheck(**given) == ExtendedCheck(most_words=3, profile="strict")


def test_the_reference_is_written_from_the_classes() -> None:
    assert "| `max_depth` | whole number | levels of nested Conductor nodes | `1` | `--max-depth` |" in keys()
