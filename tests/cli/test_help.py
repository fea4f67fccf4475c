"""What `--help` says: groups, a short usage, examples that work, one name for one thing. How a question is given."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from wfdsl.cli.main import COMMANDS, _parser, parsed
from wfdsl_rl.cli import train

TRAIN_PARTS = {"export": train._export_parser(), "strategies": train._strategies_parser()}


def command(*words: str) -> argparse.ArgumentParser:
    return list(with_actions(_parser([*words])))[1 + list(COMMANDS).index(words[0])]


def parsers() -> Iterator[argparse.ArgumentParser]:
    tops = [command(name) for name in COMMANDS]
    for top in [*tops, command("serve", "--score"), train._parser(), *TRAIN_PARTS.values()]:
        yield from with_actions(top)


def with_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from with_actions(inner)


EXAMPLES = [
    line.strip()
    for parser in parsers()
    for line in (parser.epilog or "").partition("examples:\n")[2].partition("\n\n")[0].splitlines()
]


def test_every_command_has_an_example() -> None:
    assert {line.split()[1] for line in EXAMPLES if line.startswith("wfdsl ")} == set(COMMANDS)
    assert {line.split()[0] for line in EXAMPLES} == {"wfdsl", "wfdsl-train"}


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_is_a_command_that_can_be_given(line: str) -> None:
    program, *words = shlex.split(re.split(r" [<>|] ", line)[0])
    if program == "wfdsl":
        parsed(words)
    elif part := TRAIN_PARTS.get(words[0]):
        part.parse_args(words[1:])
    else:
        train._parser().parse_args(words)


@pytest.mark.parametrize(
    "line", [line for line in EXAMPLES if line.startswith(("wfdsl check --explain", "wfdsl check --grammar"))]
)
def test_examples_that_need_no_file_work(wfdsl: Command, line: str) -> None:
    assert wfdsl(*line.split()[1:]).code == 0


@pytest.mark.parametrize("parser", list(parsers()), ids=lambda parser: parser.prog)
def test_the_usage_is_one_line_and_each_thing_has_one_name(parser: argparse.ArgumentParser) -> None:
    options = {option: action for action in parser._actions for option in action.option_strings}

    assert len(parser.format_usage().strip().splitlines()) == 1
    assert not {"--output", "--question-file", "--to"} & set(options) or parser.prog == "wfdsl fmt"
    assert not options.get("-o") or options["-o"] is options["--out"]
    assert "--format" not in options or parser.prog == "wfdsl show"


@pytest.mark.parametrize("name", ["run", "solve", "check", "eval"])
def test_options_of_one_kind_stand_together(name: str) -> None:
    text = command(name).format_help()

    assert text.index("\ninput:\n") < text.index("\nworkers and configuration:\n") < text.index("\nexamples:\n")


@pytest.fixture
def pool(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WFDSL_HOME", str(files / "home"))
    (files / "pool.toml").write_text(
        '[pool]\n[[pool.workers]]\nname = "w"\nprovider = "scripted"\noptions = { replies = ["yes"], repeat = true }\n'
    )
    (files / "one.wf").write_text('step a by 0: "Say it."\n')
    return files


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "one.wf", "Why?", "--pool", "pool.toml"],
        ["run", "one.wf", "--pool", "pool.toml", "Why?"],
        ["run", "--pool", "pool.toml", "one.wf", "Why?"],
        ["run", "--pool", "pool.toml", "one.wf", "--set", "run.run_dead_steps=true", "Why?"],
        ["run", "one.wf", "-q", "Why?", "--pool", "pool.toml"],
        ["run", "one.wf", "-", "--pool", "pool.toml"],
        ["run", "one.wf", "--pool", "pool.toml", "-q", "-"],
        ["solve", "Why?"],
        ["solve", "--pool", "local", "Why?"],
        ["run", "one.wf", "--pool", "pool.toml", "--", "Why?"],
    ],
)
def test_a_question_is_an_argument_an_option_or_standard_input(
    wfdsl: Command, pool: Path, arguments: list[str]
) -> None:
    result = wfdsl(arguments[0], "--dry-run", *arguments[1:], stdin=b"Why?")

    assert result.code == 0, result.err
    assert ("user: Why?" if arguments[0] == "run" else "Why?") in result.out


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["run", "one.wf", "--pool", "pool.toml"], b"", "give a QUESTION; - reads it from standard input"),
        (["run", "one.wf", "a", "-q", "b", "--pool", "pool.toml"], b"", "there are two questions, 'a' and 'b'"),
        (["run", "one.wf", "a", "b", "--pool", "pool.toml"], b"", "unrecognized arguments: b"),
        (["run", "one.wf", "--pool", "pool.toml", "a", "--nonsense"], b"", "unrecognized arguments: a --nonsense"),
        (["run", "one.wf", "-", "--pool", "pool.toml"], b" \n", "standard input: holds no question"),
        (["run", "one.wf", "-", "--pool", "pool.toml"], b"\xff", "not UTF-8"),
        (["run", "-", "-", "--pool", "pool.toml"], b"x", "standard input cannot be both"),
        (["solve", "--dry-run"], b"", "give a QUESTION"),
        (["solve", "a", "--from", "x.jsonl", "--out", "y.jsonl"], b"", "a file of questions with --from, not both"),
    ],
)
def test_a_question_that_is_missing_or_unclear_is_one_line(
    wfdsl: Command, pool: Path, arguments: list[str], stdin: bytes, message: str
) -> None:
    result = wfdsl(*arguments, stdin=stdin)

    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
