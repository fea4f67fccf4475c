"""`python` for programs that use TRL: forks of one process that has imported it, which takes seconds each time.

`python -m tests.rl.training.forked` is that process. It reads a folder, an environment and the words of a command as
JSON, a line each, and prints the process's id and its exit code.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
_TIMEOUT_S = 300


class Ended(NamedTuple):
    """A program that has ended."""

    returncode: int
    stdout: str
    stderr: str


class Program(NamedTuple):
    """A program that was started; one runs at a time."""

    folder: Path
    pid: int

    def wait(self) -> Ended:
        """Wait for its end."""
        said = ((self.folder / name).read_text("utf-8") for name in ("stdout", "stderr"))
        return Ended(_next_number(), *said)


def start(folder: Path, *words: str, env: Mapping[str, str] = os.environ) -> Program:
    """Start `python WORDS` in a folder: a script, or `-m` and a module."""
    pipe = _forks().stdin
    assert pipe is not None
    pipe.write(json.dumps([str(folder), dict(env), words]) + "\n")
    pipe.flush()
    return Program(folder, _next_number())


def python(folder: Path, *words: str, env: Mapping[str, str] = os.environ) -> Ended:
    """Run a program until it ends."""
    return start(folder, *words, env=env).wait()


def _next_number() -> int:
    pipe = _forks().stdout
    assert pipe is not None
    return int(pipe.readline())


@cache
def _forks() -> subprocess.Popen[str]:
    """The process that forks, which ends with this one."""
    command = [sys.executable, "-m", "tests.rl.training.forked"]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _become(folder: str, environment: dict[str, str], words: list[str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = words[1:] if words[0] == "-m" else words
    if words[0] == "-m":
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[0], run_name="__main__")


def main() -> None:
    """Fork for each line."""
    for name in ("torch.distributed.launcher.api", "trl.trainer.grpo_trainer", "wfdsl_rl.training.stages"):
        import_module(name)
    for line in sys.stdin:
        process = get_context("fork").Process(target=_become, args=json.loads(line))
        process.start()
        print(process.pid, flush=True)
        process.join(_TIMEOUT_S)
        process.kill()
        process.join()
        print(process.exitcode, flush=True)


if __name__ == "__main__":
    main()
