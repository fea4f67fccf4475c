"""Every example of docs/howto/pools.md is run."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from wfdsl.cli.main import main
from wfdsl.workers.entry import PoolSettings, WorkerEntry
from wfdsl.workers.pool import parse_pool

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "pools.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("program", _blocks("python"))
def test_python_examples_print_what_they_say(program: str) -> None:
    printed = io.StringIO()

    with contextlib.redirect_stdout(printed):
        exec(compile(program, "docs/howto/pools.md", "exec"), {"__name__": "example"})

    promised = re.findall(r"print\(.*\)  # (.*)", program)
    assert promised == printed.getvalue().splitlines()


def test_pool_files_are_valid() -> None:
    own, key = (parse_pool(text, "example.toml") for text in _blocks("toml"))

    assert own.names == ("gpt", "claude", "gemini", "qwen")
    assert key.entry(0).api_key_env == "OPENROUTER_API_KEY"


def test_commands_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = _blocks("console")
    command, _, output = example.partition("\n")

    code = main(command.removeprefix("$ wfdsl ").split())

    assert code == 0
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == output.splitlines()


def test_every_setting_is_in_the_table() -> None:
    table = PAGE[PAGE.index("| key | meaning |") : PAGE.index("## Keys")]
    documented = set(re.findall(r"`([a-z_]+)`", table))

    missing = [name for name in (*WorkerEntry.model_fields, *PoolSettings.model_fields) if name not in documented]

    assert missing == []
