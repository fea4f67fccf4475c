"""A server of ours as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.forked import Program


class RunningServer:
    """A running server, whose address and log are read from its standard error."""

    def __init__(
        self, folder: Path, *arguments: str, prefix: Sequence[str] = (), env: dict[str, str] | None = None
    ) -> None:
        """`arguments` are those of `python`; the process works in `folder`, and the journal is inside. With a prefix,
        such as `env`, it has an interpreter of its own, which takes a second longer.

        Raises:
            AssertionError: it ended without naming an address.
        """
        found_in = {**os.environ, "WFDSL_HOME": str(folder / "home"), **(env or {})}
        read, write = os.pipe()
        self.process: Program | subprocess.Popen[bytes]
        if prefix:
            command = [*prefix, sys.executable, *arguments]
            self.process = subprocess.Popen(command, cwd=folder, env=found_in, stderr=write)
        else:
            self.process = Program(*arguments, folder=folder, env=found_in, stderr=write)
        os.close(write)
        self._stderr = os.fdopen(read, encoding="utf-8")
        self.lines: list[str] = []
        for line in self._stderr:
            self.lines.append(line)
            if found := re.search(r"http://[^\s,]+", line):
                self.url = found[0]
                break
        else:
            self.process.wait(60)
            self._stderr.close()
            raise AssertionError(f"the server did not start: {''.join(self.lines)}")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self.lines.extend(self._stderr)

    def stop(self, how: int = signal.SIGTERM) -> int:
        """End it, if it has not ended; its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(60)
        self._reader.join(10)
        self._stderr.close()
        return code
