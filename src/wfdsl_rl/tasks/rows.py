"""Rows of data files: JSON lines, JSON, CSV and parquet, each row with the place that it comes from.

Files are read row by row, so that the first hundred rows of a large file cost a hundred rows.
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from dataclasses import dataclass
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, cast

from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_LONGEST_FIELD = 1 << 28  # characters of a CSV field: LiveCodeBench has tests of megabytes
_PARQUET_BATCH = 256  # rows
_LETTERS = ("A", "B", "C", "D")  # of the options of MMLU


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a file or data set."""

    place: str
    """Where it stands, such as `train.jsonl:17`."""
    values: Mapping[str, Any]
    """What it holds, by column."""


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file; its name says which form it has.

    Raises:
        UsageError: the file cannot be read, or has another form than its name says.
    """
    reader = _reader(path)
    try:
        yield from reader(path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start}): save it as UTF-8") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path}: not a whole gzip file ({error}): fetch it again") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


def is_data_file(path: Path) -> bool:
    """Whether the name is that of a file which `read_rows` reads."""
    return _form(path) in _READERS


def late(module: str, *, needed_for: str, install: str) -> Any:
    """An optional module, imported only where it is used.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(f'{needed_for} needs the package {package}: pip install "{install}"') from error


def _form(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _reader(path: Path) -> Callable[[Path], Iterator[Row]]:
    form = _form(path)
    if form not in _READERS:
        raise UsageError(f"{path}: a file of tasks ends in {', '.join(_READERS)} (the text forms also in .gz)")
    return _READERS[form]


def _open(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _json_lines(path: Path) -> Iterator[Row]:
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _json_line(f"{path}:{number}", line)


def _json_line(place: str, line: str) -> Row:
    try:
        return _object(place, json.loads(line))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: not JSON: {error}. A .jsonl file holds one JSON object a line") from error


def _object(place: str, value: object) -> Row:
    if not isinstance(value, dict):
        raise UsageError(f"{place}: a row is a JSON object, with column names as keys")
    return Row(place, value)


def _json(path: Path) -> Iterator[Row]:
    with _open(path) as file:
        text = file.read()
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        # Many `.json` files of data sets hold one object a line.
        yield from _json_lines(path)
        return
    for index, value in enumerate(_items(path, whole)):
        yield _object(f"{path}, item {index}", value)


def _items(path: Path, whole: object) -> list[Any]:
    if isinstance(whole, dict):
        inside = next(iter(whole.values())) if len(whole) == 1 else None
        # One object alone may be a list under a name, or a row.
        whole = inside if _is_list_of_objects(inside) else [whole]
    if not isinstance(whole, list):
        raise UsageError(f"{path}: a .json file of tasks holds a list of objects, or one object a line")
    return whole


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _csv(path: Path, separator: str = ",") -> Iterator[Row]:
    csv.field_size_limit(_LONGEST_FIELD)
    with _open(path) as file:
        cells = csv.reader(file, delimiter=separator, strict=True)
        try:
            yield from _csv_rows(path, cells)
        except csv.Error as error:
            raise UsageError(f"{path}:{cells.line_num}: not CSV: {error}") from error


def _csv_rows(path: Path, cells: Any) -> Iterator[Row]:
    header: list[str] | None = None
    for row in cells:
        if header is None:
            header = _header(row)
            if header is row:
                continue
        if not row:
            continue
        place = f"{path}:{cells.line_num}"
        if len(row) != len(header):
            raise UsageError(f"{place}: {len(row)} cells, but the first row has {len(header)}")
        yield Row(place, dict(zip(header, row, strict=True)))


def _header(first: list[str]) -> list[str]:
    """The column names: the first row itself, except in MMLU's own files, which have none."""
    if len(first) == len(_LETTERS) + 2 and first[-1].strip() in _LETTERS and not set(_LETTERS) <= set(first):
        return ["question", *_LETTERS, "answer"]
    return first


def _tsv(path: Path) -> Iterator[Row]:
    return _csv(path, "\t")


def _parquet(path: Path) -> Iterator[Row]:
    parquet = late("pyarrow.parquet", needed_for=f"{path}: parquet", install="wfdsl[eval]")
    arrow = late("pyarrow", needed_for=f"{path}: parquet", install="wfdsl[eval]")
    index = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH):
                for values in batch.to_pylist():
                    yield Row(f"{path}, row {index}", values)
                    index += 1
    except arrow.ArrowException as error:
        raise UsageError(f"{path}: not a parquet file: {error}") from error


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
}
