"""JSON lines: the records of a file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from wfdsl.errors import UsageError

_LONGEST_LINE = 1 << 24  # bytes of a line that is read; our choice


def read_records(source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with their line numbers, one in memory at a time; gzipped if it is named `*.gz`.

    Raises:
        UsageError: the file cannot be read, or a line is not a JSON object.
    """
    try:
        with _opened(source) as file:
            number = 0
            while line := file.readline(_LONGEST_LINE + 1):
                number += 1
                if len(line) > _LONGEST_LINE:
                    raise UsageError(f"{source}:{number}: is longer than {_LONGEST_LINE >> 20} MiB")
                if line.strip():
                    yield number, _record(line, f"{source}:{number}")
    except (OSError, EOFError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise UsageError(f"{source}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _opened(source: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(source) if source.endswith(".gz") else Path(source).open("rb"))


def _record(line: bytes, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        raise UsageError(f"{place}: is not JSON: write one object a line") from None
    if not isinstance(record, dict):
        raise UsageError(f'{place}: is not a JSON object: write one a line, such as {{"question": "..."}}')
    return record
