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


class RunningServer:
    """A running server, whose address and log are read from its standard error."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        prefix: Sequence[str] = (),
        env: dict[str, str] | None = None,
        python: str | Path = sys.executable,
    ) -> None:
        """`arguments` are those of `python`; the process works in `folder`, and the journal is inside.

        Raises:
            AssertionError: it ended without naming an address.
        """
        found_in = {**os.environ, "WFDSL_HOME": str(folder / "home"), "PYTHONUNBUFFERED": "1", **(env or {})}
        self.process = subprocess.Popen(
            [*prefix, python, *arguments], cwd=folder, env=found_in, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"http://[^\s,]+", line):
                self.url = found[0]
                break
        else:
            self.process.wait(60)
            self.process.stderr.close()
            raise AssertionError(f"the server did not start: {''.join(self.lines)}")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(self.process.stderr)

    def stop(self, how: int = signal.SIGTERM) -> int:
        """End it, if it has not ended; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(60)
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code
