"""`python` for programs that use TRL: forks of one process that has imported it, which takes seconds each time.

`python -m tests.rl.training.forked` is that process. It reads a folder, an environment and the words of a command as
JSON, a line each, and prints the process's id and its exit code.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
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


def python(
    folder: Path, *words: str, env: Mapping[str, str] = os.environ, kill_when: Callable[[], bool] | None = None
) -> Ended:
    """Run `python WORDS` in a folder: a script, or `-m` and a module. It may be killed when something has happened."""
    to, back = _forks().stdin, _forks().stdout
    assert to is not None
    assert back is not None
    to.write(json.dumps([str(folder), dict(env), words]) + "\n")
    to.flush()
    pid = int(back.readline())
    while kill_when and Path(f"/proc/{pid}").exists():
        if kill_when():
            os.kill(pid, signal.SIGKILL)
            break
        time.sleep(0.02)
    code = int(back.readline())
    return Ended(code, *((folder / name).read_text("utf-8") for name in ("stdout", "stderr")))


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
