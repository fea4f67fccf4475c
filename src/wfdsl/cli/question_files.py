"""Questions in a JSON lines file, and the answers that another one holds already."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from wfdsl.errors import UsageError
from wfdsl.interpreter.context import Question
from wfdsl.language.diagnostics import Suggestions

_LONGEST_LINE = 1 << 24  # bytes of a line that is read; our choice
_OURS = ("question", "id")
GIVEN_UP = "no_valid_workflow"
"""The field that is true where a Conductor wrote no valid workflow."""


class Asked(NamedTuple):
    """A line of the file."""

    id: str | int | float
    """The line's own, or its number."""
    question: Question


class Before(NamedTuple):
    """What a file of answers holds already."""

    answered: dict[str, Question]
    """The questions that have an answer, by id."""
    given_up: Counter[str]
    """How often a Conductor wrote no valid workflow, by id: with the same completions it would fail again."""


def columns_of(mapping: str | None) -> dict[str, str]:
    """What the file calls `question` and `id`, from `FIELD=COLUMN,...`; `id` only if it is named.

    Raises:
        UsageError: it is not of this form.
    """
    columns = {"question": "question"}
    for part in filter(None, (mapping or "").split(",")):
        ours, equals, theirs = (word.strip() for word in part.partition("="))
        if ours not in _OURS or not equals or not theirs:
            raise UsageError(f"--map {part!r}: write question=NAME or id=NAME, with a comma between the two")
        columns[ours] = theirs
    return columns


def read_questions(source: str, columns: Mapping[str, str]) -> list[Asked]:
    """The questions of a file, gzipped if it is named `*.gz`.

    Raises:
        UsageError: the file cannot be read, a line has no question, or two lines have the same id.
    """
    found: list[Asked] = []
    seen: dict[str, int] = {}
    for number, record in read_records(source):
        place = f"{source}:{number}"
        asked = Asked(_id(record, columns, place, number), _question(record, columns["question"], place))
        first = seen.setdefault(str(asked.id), number)
        if first != number:
            raise UsageError(f"{place}: has the id {asked.id!r}, which line {first} has already; ids must be unique")
        found.append(asked)
    return found


def read_before(target: str) -> Before:
    """The results of earlier commands; a line that was cut off is ignored.

    Raises:
        UsageError: the file cannot be read.
    """
    found = Before({}, Counter())
    try:
        if Path(target).exists() and not (Path(target).is_file() or Path(target).is_dir()):
            raise UsageError(
                f"{target}: not a regular file, so the command could not be resumed; --json also prints the answers"
            )
        with Path(target).open("rb") as file:
            for line in file:
                row = _row_or_none(line)
                if row is not None and row.get("answer") is not None:
                    found.answered[str(row.get("id"))] = row.get("question", "")
                elif row is not None and row.get(GIVEN_UP) is True:
                    found.given_up[str(row.get("id"))] += 1
    except FileNotFoundError:
        return found
    except (OSError, ValueError) as error:
        raise UsageError(f"{target}: cannot be read: {_reason(error)}") from error
    return found


def open_answers(target: str) -> FileIO:
    """The file, open at its end, on a new line; its folder is made if it does not exist.

    It has no buffer, so a write error is known at once.

    Raises:
        UsageError: it cannot be written.
    """
    path = Path(target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        cut = _is_cut_off(path)
        out = FileIO(path, "a")
        if cut:
            out.write(b"\n")
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {_reason(error)}") from error
    return out


def append_line(out: FileIO, line: str) -> None:
    """Write a line to the end of a file."""
    left = f"{line}\n".encode()
    while left:
        left = left[out.write(left) :]


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
        raise UsageError(f"{source}: cannot be read: {_reason(error)}") from error


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


def _value(record: dict[str, Any], ours: str, theirs: str, place: str) -> Any:
    """The value of a column; dots go into nested objects."""
    value: Any = record
    for key in [theirs] if theirs in record else theirs.split("."):
        if not isinstance(value, dict) or key not in value:
            hint = Suggestions().hint(theirs, record) or f"it has {', '.join(map(repr, record)) or 'none'}:"
            raise UsageError(f"{place}: has no field {theirs!r}: {hint} name the right one with --map {ours}=NAME")
        value = value[key]
    return value


def _question(record: dict[str, Any], column: str, place: str) -> Question:
    value = _value(record, "question", column, place)
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, list) and value and all(map(_is_message, value)):
        return [{"role": message["role"], "content": message["content"]} for message in value]
    raise UsageError(f"{place}: {column!r} must be a text, or a list of chat messages")


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("role", "content"))


def _id(record: dict[str, Any], columns: Mapping[str, str], place: str, number: int) -> str | int | float:
    if "id" not in columns:
        own = record.get("id")
        return number if isinstance(own, bool) or not isinstance(own, str | int | float) else own
    value = _value(record, "id", columns["id"], place)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{place}: {columns['id']!r} must be a text or a number")
    return value


def _row_or_none(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _is_cut_off(path: Path) -> bool:
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) != b"\n"


def _reason(error: OSError | EOFError | ValueError) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
