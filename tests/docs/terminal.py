"""A command whose standard error is a terminal, and what that terminal shows in the end."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_COLUMNS = 80
_CHUNK = 1 << 16
_TIMEOUT_S = 300
_CODE = re.compile(r"\x1b\[(?P<argument>[0-9;?]*)(?P<letter>[A-Za-z])|[\r\n]|[^\x1b\r\n]+")


def run_on_terminal(command: list[str], folder: Path) -> tuple[int, str, str]:
    """The exit code, the terminal's last picture of standard error, and standard output."""
    ours, theirs = pty.openpty()
    settings = {**os.environ, "COLUMNS": str(_COLUMNS), "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen(
        command, cwd=folder, env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        written = _all_of(ours)
        answer, _ = process.communicate(timeout=_TIMEOUT_S)
    return process.returncode, screen(written.decode()), answer


def screen(written: str) -> str:
    """What a terminal shows after this was written to it, as far as progress displays use one."""
    lines, row, column = [""], 0, 0
    for found in _CODE.finditer(written):
        text = found.group()
        if text == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif text == "\r":
            column = 0
        elif not text.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
        elif found["letter"] == "A":
            row = max(0, row - int(found["argument"] or 1))
        elif found["letter"] == "K":
            lines[row] = ""
    return "".join(f"{line.rstrip()}\n" for line in lines).rstrip("\n") + "\n"


def _all_of(terminal: int) -> bytes:
    written = b""
    while True:
        try:
            chunk = os.read(terminal, _CHUNK)
        except OSError:  # Linux says so when the other end is closed
            chunk = b""
        if not chunk:
            os.close(terminal)
            return written
        written += chunk
