"""Files: written whole, so that a reader never sees, and a crash never leaves, half a file; texts, and JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Final

from wfdsl.errors import UsageError

_LONGEST_LINE: Final = 1 << 24  # bytes of a line that is read; our choice
_UTF8_BYTES_PER_CHAR: Final = 4
_PIECE: Final = 1 << 16  # bytes


def write_whole(path: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Write a file beside its place, let it reach the disk, and put it there; `mode`, or the mode that it had, stays.

    Raises:
        OSError: it cannot be written; what stood there before still does.
    """
    path = path.resolve()  # a link stays one
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("xb") as file:
            if mode is not None or path.exists():
                os.fchmod(file.fileno(), path.stat().st_mode if mode is None else mode)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def read_stream(stream: BufferedIOBase, name: str, max_chars: int) -> str | None:
    """A stream's text, or None if it is longer than the limit, of which no more than the limit is read.

    Raises:
        UsageError: it is not UTF-8 text.
    """
    most = max_chars * _UTF8_BYTES_PER_CHAR
    data = bytearray()
    # One system call at a time, so that an interrupt between two of them is heeded.
    while len(data) <= most and (piece := stream.read1(min(_PIECE, most + 1 - len(data)))):
        data += piece
    if len(data) > most:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: is not UTF-8 text: byte {error.start} cannot be decoded") from error
    return text if len(text) <= max_chars else None


def read_json_lines(path: str | Path, *, longest: int = _LONGEST_LINE) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with their line numbers, one in memory at a time; gzipped if it is named `*.gz`.

    Raises:
        UsageError: the file cannot be read, or a line is not a JSON object or has more bytes than `longest`.
    """
    import gzip  # noqa: PLC0415  (start-up time)
    import zlib  # noqa: PLC0415

    try:
        with gzip.open(path) if str(path).lower().endswith(".gz") else Path(path).open("rb") as file:
            number = 0
            while line := file.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise UsageError(f"{path}:{number}: is longer than {longest >> 20} MiB")
                if line.strip():
                    yield number, _json_object(line, f"{path}:{number}")
    except (OSError, EOFError, ValueError, zlib.error) as error:  # ValueError: a name with a NUL in it
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _json_object(line: bytes, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        raise UsageError(f"{place}: is not JSON: write one object a line") from None
    if not isinstance(record, dict):
        raise UsageError(f'{place}: is not a JSON object: write one a line, such as {{"question": "..."}}')
    return record
