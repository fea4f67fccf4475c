"""Standard output and standard error of a command: safe to show on a terminal, and no reason to lose paid work.

Texts of models, servers, files and arguments may hold what a terminal obeys: escape sequences, or characters that
reorder a line. Everything that is printed is therefore written with those characters as `\\u001b`, which is also how
JSON writes them. Standard error that cannot be written is switched off; standard output is what a command is for, so
that raises `OutputFailed`.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, TextIO, cast

# Control characters but tab and line ends, U+2028 and U+2029, and what overrides the direction of writing.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]|\r(?!\n)")
_CLOSED: Final = (errno.EPIPE, errno.EIO)  # the reader of a pipe, or the terminal, has gone


def visible(text: str) -> str:
    """The text as a terminal may show it: characters that it would obey are written as `\\u001b`."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class OutputFailed(Exception):  # noqa: N818  (an error of the outside world, like WorkerFailure)
    """Standard output cannot be written."""

    def __init__(self, error: OSError) -> None:
        self.closed = error.errno in _CLOSED
        """Whether its reader has gone, who has seen enough (`| head`)."""
        self.advice = ""
        """What to do about it."""
        full = error.errno == errno.ENOSPC
        reason = "the disk is full" if full else (error.strerror or str(error)).lower()
        super().__init__(f"the output cannot be written: {reason}")


class SafeStream:
    """A stream that shows what a terminal would obey, and that is switched off when it cannot be written."""

    def __init__(self, stream: TextIO, *, needed: bool, exact: bool = False) -> None:
        """`exact`: the text is safe already, or no terminal will show it."""
        self.stream = stream
        self._needed = needed
        self._exact = exact

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    @property
    def exact(self) -> SafeStream:
        """The same stream for text with styles, whose other parts are safe already."""
        return SafeStream(self.stream, needed=self._needed, exact=True)

    def write(self, text: str) -> int:
        """Write a text, safely."""
        with self._checked():
            return self.stream.write(text if self._exact else visible(text))
        return 0

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts, safely."""
        self.write("".join(lines))

    def write_bytes(self, data: bytes) -> None:
        """Write what no terminal will show, whatever the stream's encoding."""
        with self._checked():
            self.stream.flush()
            self.stream.buffer.write(data)
            self.stream.buffer.flush()

    def flush(self) -> None:
        """Let everything that was written arrive."""
        with self._checked():
            self.stream.flush()

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What is left in the buffer goes nowhere, so that Python does not complain when it exits.
            with suppress(io.UnsupportedOperation):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
            if self._needed:
                raise OutputFailed(error) from error


@contextmanager
def safe_streams() -> Iterator[None]:
    """Make the standard streams safe, of any encoding, and there: a caller may have closed them."""
    before = sys.stdin, sys.stdout, sys.stderr
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  (open until the end; start-up time)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, SafeStream(stream, needed=name == "stdout"))
    try:
        yield
    finally:
        error = sys.exception()
        if error is None or isinstance(error, SystemExit):  # else a traceback follows, which is to be safe as well
            sys.stdin, sys.stdout, sys.stderr = before


def styled(stream: TextIO) -> IO[str]:
    """A stream for text with styles: rich's, or our own colours."""
    return cast(IO[str], stream.exact) if isinstance(stream, SafeStream) else stream


_CODES: Final = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}


def wants_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and its user has not refused them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Columns of the terminal, also where a pager shows what is printed; 80 if there is none."""
    if (said := os.environ.get("COLUMNS", "")).isdigit():
        return int(said) or 80
    for stream in (0, 1, 2):
        with suppress(OSError):
            return os.get_terminal_size(stream).columns or 80
    return 80


def painted(text: str, style: str) -> str:
    """A safe text in a style, such as `bold red`; empty for none."""
    codes = ";".join(str(_CODES[word]) for word in style.split())
    return f"\x1b[{codes}m{visible(text)}\x1b[0m" if codes else visible(text)


def print_styled(*pieces: str | tuple[str, str]) -> None:
    """Print a line on standard output; a piece may come with a style, which a terminal shows."""
    is_coloured = wants_colours(sys.stdout) or bool(os.environ.get("FORCE_COLOR"))
    styles = [(each, "") if isinstance(each, str) else each for each in pieces]
    print("".join(painted(text, style if is_coloured else "") for text, style in styles), file=styled(sys.stdout))


def print_exactly(text: str) -> None:
    """Print a text for other programs on standard output: only a terminal gets it safe."""
    stream = sys.stdout if sys.stdout.isatty() else styled(sys.stdout)
    stream.write(text)
    stream.flush()


def print_utf8(text: str) -> None:
    """Print what is meant for a file or a pipe: UTF-8, whatever the terminal speaks."""
    if sys.stdout.isatty():
        print(text, end="")
        return
    assert isinstance(sys.stdout, SafeStream), "every command runs with safe streams"
    sys.stdout.write_bytes(text.encode())
