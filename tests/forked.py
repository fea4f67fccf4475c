"""`python` for programs of ours, as processes of their own that begin at once: forks of one that has imported a lot.

`python -m tests.forked MODULE ...` is that one. For each request it forks twice: the second fork is the program, and
the first waits for it and tells how it ended. A program has its own folder, environment, streams and signals, but not
its own interpreter: tests of what is imported, or of options and variables of Python, start a real one.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "wfdsl.cli.eval_run",
    "wfdsl.viewer.app",
    "wfdsl.server.app",
    "wfdsl.server.listening",
    "wfdsl_rl.engines.server",
    "wfdsl.workers.openai_api",
    "openai.resources",
    "httpcore2",
    "anyio._backends._asyncio",
    "lark",
    "networkx",
)
"""What the commands of `wfdsl` import."""
TRAINING = ("torch.distributed.launcher.api", "trl.trainer.grpo_trainer", "wfdsl_rl.training.stages")


class Program:
    """A running program."""

    def __init__(
        self,
        *words: str,
        folder: Path = Path(),
        env: Mapping[str, str] = os.environ,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        own_group: bool = False,
        imported: tuple[str, ...] = COMMANDS,
    ) -> None:
        """Begin `python WORDS`: a file, or `-m` and a module. Streams are descriptors; without one, a program reads
        nothing, and what it writes is kept.
        """
        self.returncode: int | None = None
        self.stdout = self.stderr = ""
        """What it has written, once it has ended."""
        self._written = [TemporaryFile("w+", encoding="utf-8") for _ in range(2)]  # noqa: SIM115  (closed at its end)
        read, told = os.pipe()
        self._told = os.fdopen(read, "rb", buffering=0)
        control, _ = _forks(imported)
        request = json.dumps([words, str(folder.resolve()), dict(env), own_group]).encode()
        with Path(os.devnull).open() as nothing, os.fdopen(told, "wb") as end:
            default, given = (nothing, *self._written, end), (stdin, stdout, stderr, None)
            fds = [file.fileno() if fd is None else fd for fd, file in zip(given, default, strict=True)]
            socket.send_fds(control, [b"%8d" % len(request)], fds)
            control.sendall(request)
        self.pid = self._number()

    def _number(self) -> int:
        return int.from_bytes(self._told.read(4), "little", signed=True)

    def wait(self, timeout: float = 300.0) -> int:
        """Its exit code; negative: the signal that ended it.

        Raises:
            TimeoutExpired: it goes on for longer.
        """
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("python", timeout)
            self.returncode = self._number()
            for file in self._written:
                file.seek(0)
            self.stdout, self.stderr = (file.read() for file in self._written)
            for each in (self._told, *self._written):
                each.close()
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, how: int) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, how)


def ended(*words: str, **more: Any) -> Program:
    """A program that has ended."""
    program = Program(*words, **more)
    try:
        program.wait()
    finally:
        program.send_signal(signal.SIGKILL)
    return program


@cache
def _forks(imported: tuple[str, ...]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """How to ask the process that forks, and that process, which ends with this one."""
    ours, its = socket.socketpair()
    with its:
        command = [sys.executable, "-m", "tests.forked", str(its.fileno()), *imported]
        return ours, subprocess.Popen(command, cwd=ROOT, pass_fds=[its.fileno()])


def _is_program(told: int, streams: list[int]) -> bool:
    """Fork twice; whether this is the second fork. The first one never comes back."""
    if os.fork():
        return False
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if not (pid := os.fork()):
        return True
    for each in streams:
        os.close(each)
    os.write(told, pid.to_bytes(4, "little"))
    os.write(told, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]).to_bytes(4, "little", signed=True))
    os._exit(0)


def _become(words: list[str], folder: str, environment: dict[str, str], *, own_group: bool) -> None:
    """Be the program, in its streams."""
    if own_group:
        os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = words[1:] if words[0] == "-m" else words
    if words[0] == "-m":
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[0], run_name="__main__")


def main(control: socket.socket, imported: Sequence[str]) -> None:
    """Fork for each request; in the program, come back when that has ended."""
    for name in imported:
        import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while (received := socket.recv_fds(control, 8, 4))[0]:
        *streams, told = received[1]
        words, folder, environment, own_group = json.loads(control.recv(int(received[0]), socket.MSG_WAITALL))
        is_program = _is_program(told, streams)
        for number, each in enumerate(streams):
            if is_program:
                os.dup2(each, number)
            os.close(each)
        os.close(told)
        if is_program:
            control.close()
            _become(words, folder, environment, own_group=own_group)
            break


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
