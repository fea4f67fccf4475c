"""Console examples of a page: `$ command` lines, run in a folder of the page's own, and what they print.

`wfdsl` and `wfdsl-train` run in this process; a command with a pipe or a redirection runs in a shell. Times, run ids,
token counts and what they cost are not compared, nor are the words of a model's answer. A line of the page that holds
only `...` matches any lines.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from wfdsl.cli.main import main
from wfdsl_rl.cli.train import main as train

from .pages import ROOT

_SHELL = re.compile(r"[|<>;&`$]")
_VOLATILE = [
    (re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?"), "DATE"),
    (re.compile(r"\d+ min \d\d s|\d+(?:\.\d)? m?s\b"), "TIME"),
    (re.compile(r"[\d,]+(?: \+ [\d,]+)? tokens(?:, \$\d+\.\d+)?"), "N tokens"),
    (re.compile(r", reply ended by: length"), ""),
]
_ANSWER = "\x00"
_TIMEOUT_S = 300
_PROGRAMS = {"wfdsl": main, "wfdsl-train": train}


class Command(NamedTuple):
    """A command and what the page shows that it prints."""

    text: str
    output: str


@dataclass
class Console:
    """A shell session of a page, as far as examples need one."""

    folder: Path
    code: int = 0
    """The exit code of the last command."""

    def run(self, command: str) -> str:
        """What a command prints; standard output and error as they come."""
        if command == "echo $?":
            return f"{self.code}\n"
        words = shlex.split(command)
        if words[0] == "make":
            return self._make(words[1:])
        if _SHELL.search(_unquoted(command)):
            return self._shell(command)
        if words[0] == "cat":
            return "".join(Path(name).read_text("utf-8") for name in words[1:])
        assert words[0] in _PROGRAMS, f"only `wfdsl`, `wfdsl-train`, `make`, `cat` and pipes are run: {command}"
        return self._program(*words)

    def _program(self, name: str, *arguments: str) -> str:
        raw, answer = io.BytesIO(), io.BytesIO()
        out = io.TextIOWrapper(raw, "utf-8", write_through=True)
        answers = arguments[0] in ("run", "solve") and "--dry-run" not in arguments
        shown = io.TextIOWrapper(answer, "utf-8", write_through=True) if answers else out
        with redirect_stderr(out), redirect_stdout(shown):
            try:
                self.code = _PROGRAMS[name](arguments)
            except SystemExit as ending:  # argparse: --help, or arguments that it refuses
                self.code = int(ending.code or 0)
        return raw.getvalue().decode() + (f"{_ANSWER}\n" if answer.getvalue().strip() else "")

    def _make(self, arguments: list[str]) -> str:
        """Run the `wfdsl` commands of a target; the setting up has been done."""
        lines = [line for line in planned(arguments) if re.match(r"\S*/wfdsl ", line)]
        assert lines, f"`make {' '.join(arguments)}` runs no wfdsl command"
        return "".join(f"{line}\n{self._program('wfdsl', *shlex.split(line)[1:])}" for line in lines)

    def _shell(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_S,
        )
        self.code = done.returncode
        return done.stdout.decode()


def planned(arguments: list[str]) -> list[str]:
    """What make would do; it fails if there is no such target."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", "-n", *arguments, "VENV=.venv"]
    listed = subprocess.run(command, cwd=ROOT, env=outside, check=True, capture_output=True, text=True)
    return listed.stdout.splitlines()


def commands_of(block: str) -> list[Command]:
    """The commands of a block; one that ends in a backslash continues in the next line."""
    found: list[list[str]] = []
    joined = re.sub(r"\\\n\s*", "", block)
    for line in joined.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:].strip(), ""])
        else:
            assert found, "a console example begins with `$ command`"
            found[-1][1] += line
    return [Command(*command) for command in found]


def matches(actual: str, shown: str) -> bool:
    """Whether what a page shows is what was printed, as far as both are compared."""
    return _fits(_comparable(actual), _comparable(shown))


def _fits(actual: tuple[str, ...], shown: tuple[str, ...]) -> bool:
    if not shown:
        return not actual
    if shown[0].strip() == "...":
        return _fits(actual, shown[1:]) or (bool(actual) and _fits(actual[1:], shown))
    if actual and actual[0] == _ANSWER:
        return bool(shown[0]) and any(_fits(actual[1:], shown[taken:]) for taken in range(1, len(shown) + 1))
    return bool(actual) and actual[0] == shown[0] and _fits(actual[1:], shown[1:])


def _comparable(text: str) -> tuple[str, ...]:
    return tuple(_stable(line.rstrip()) for line in text.strip("\n").splitlines())


def _stable(line: str) -> str:
    found = line
    for volatile, stand_in in _VOLATILE:
        found = volatile.sub(stand_in, found)
    return line if found == line else re.sub(r" {2,}", "  ", found).rstrip()


def _unquoted(command: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
