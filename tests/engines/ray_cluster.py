"""A Ray cluster on this machine."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.engines import ENVIRONMENTS, HERE

PYTHON = ENVIRONMENTS / "ray/bin/python"


class Cluster:
    """Nodes with a CPU each. `folder` is where drivers work; the journal is in `home`."""

    def __init__(self, home: Path, nodes: int = 3) -> None:
        self.folder = home
        self.env = {
            **os.environ,
            "WFDSL_HOME": str(home),
            "OPENAI_API_KEY": "none",
            "OMP_NUM_THREADS": "1",
            "RAY_raylet_start_wait_time_s": "240",
            "RAY_worker_niceness": "0",  # else a busy machine starves them
        }
        self._said = home / "cluster.txt"
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                [PYTHON, HERE / "programs/ray_cluster.py", str(nodes)],
                env=self.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        self.address = self._line()

    def change(self, what: str) -> None:
        """Kill a node, or add one."""
        assert self._process.stdin is not None
        print(what, file=self._process.stdin, flush=True)
        assert self._line() == "done"

    def processes(self, actor: str = "NodeProcess") -> list[int]:
        """The processes of an actor; those of `NodeProcess` run trials."""
        home = f"WFDSL_HOME={self.env['WFDSL_HOME']}\0".encode()
        return [
            pid
            for pid in (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
            if _is_actor(pid, actor, home)
        ]

    def close(self) -> None:
        self._process.communicate(timeout=120)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, self._said.read_text()
        return line


def eventually(what: Callable[[], Any]) -> Any:
    """Wait for something that is true."""
    end = time.monotonic() + 120
    while not (found := what()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
    return found


def _is_actor(pid: int, actor: str, home: bytes) -> bool:
    try:
        name, environment = (Path(f"/proc/{pid}/{file}").read_bytes() for file in ("cmdline", "environ"))
    except OSError:  # it has ended
        return False
    return name.startswith(f"ray::{actor}".encode()) and home in environment
