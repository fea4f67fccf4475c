"""Rows of data files (JSON lines, JSON, CSV, parquet) and of Hugging Face data sets, each with its place.

A data set is named `OWNER/NAME` or `OWNER/NAME#CONFIG`, optionally with `@SPLIT`, or by one of the short names below.
Files are read row by row, so that the first hundred rows of a large file cost a hundred rows.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast

from wfdsl.errors import UsageError
from wfdsl.installation import require_packages

_LONGEST_FIELD = 1 << 28  # characters of a CSV field: LiveCodeBench has tests of megabytes
_PARQUET_BATCH = 256  # rows
_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:#(?P<config>[^@]+))?(?:@(?P<split>.+))?", re.ASCII)
_USUAL_SPLITS = ("test", "validation", "train")  # in this order if no split is named: our choice


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a file or data set."""

    place: str
    """Where it was read, such as `train.jsonl:17`."""
    values: Mapping[str, Any]
    """Values by column."""


@dataclass(frozen=True, slots=True)
class HubName:
    """A data set on the Hugging Face hub, with its configuration and split."""

    name: str
    config: str | None = None
    split: str | None = None
    files: str | None = None
    """Files in it, for data sets that are files and a loading script, which `datasets` no longer runs."""

    def __str__(self) -> str:
        config = f"#{self.config}" if self.config else ""
        return f"{self.name}{config}" + (f"@{self.split}" if self.split else "")


SHORT_NAMES: dict[str, HubName] = {
    "aime24": HubName("HuggingFaceH4/aime_2024", split="train"),
    "aime25": HubName("math-ai/aime25", split="test"),
    "bigcodebench": HubName("bigcode/bigcodebench", split="v0.1.4"),
    "bigcodebench-hard": HubName("bigcode/bigcodebench-hard", split="v0.1.4"),
    "gpqa-diamond": HubName("Idavidrein/gpqa", "gpqa_diamond", "train"),
    "gsm8k": HubName("openai/gsm8k", "main", "test"),
    "humaneval": HubName("openai/openai_humaneval", split="test"),
    # The first release, and what the sixth added.
    "livecodebench-v1": HubName("livecodebench/code_generation_lite", split="test", files="test.jsonl"),
    "livecodebench-v6": HubName("livecodebench/code_generation_lite", split="test", files="test6.jsonl"),
    "math": HubName("DigitalLearningGmbH/MATH-lighteval", split="train"),
    "math500": HubName("HuggingFaceH4/MATH-500", split="test"),
    "mbpp": HubName("google-research-datasets/mbpp", "full", "test"),
    "mmlu": HubName("cais/mmlu", "all", "test"),
    "rlpr": HubName("openbmb/RLPR-Train-Dataset", split="train"),
    "svamp": HubName("ChilleD/SVAMP", split="test"),
    "webinstruct": HubName("TIGER-Lab/WebInstruct-verified", split="train"),
}
"""Data sets of the paper and similar ones, by a short name; `@SPLIT` can be added to it."""


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file; its suffix says which format it has.

    Raises:
        UsageError: the file cannot be read, or does not have the format of its suffix.
    """
    reader = _READERS.get(_suffix(path))
    if reader is None:
        raise UsageError(f"{path}: a file of tasks ends in {', '.join(_READERS)} (text formats also in .gz)")
    try:
        yield from reader(path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path}: not a complete gzip file ({error}); download it again") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_folder(path: Path) -> Iterator[Row]:
    """The rows of the data files of a folder, in the order of their names.

    Raises:
        UsageError: there are none, or one cannot be read.
    """
    files = sorted(file for file in path.iterdir() if is_data_file(file) and not file.name.startswith("."))
    if not files:
        raise UsageError(f"{path}: the folder has no data files ({', '.join(_READERS)})")
    for file in files:
        yield from read_rows(file)


def read_hub(wanted: HubName) -> Iterator[Row]:
    """The rows of a data set on the Hugging Face hub.

    Raises:
        UsageError: `datasets` is not installed, or the data set cannot be loaded.
    """
    try:
        import datasets  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(f'{wanted}: a data set needs the package datasets: pip install "datasets>=5,<6"') from error
    try:
        if wanted.files:
            data = datasets.load_dataset(
                "json", data_files=f"hf://datasets/{wanted.name}/{wanted.files}", split="train"
            )
        else:
            data = datasets.load_dataset(wanted.name, wanted.config, split=wanted.split)
    except Exception as error:  # names, configurations and the network: of httpx, OSErrors and others
        cause = " ".join(str(error).split())[:300]
        raise UsageError(
            f"{wanted}: cannot be loaded from the Hugging Face hub: {cause}. Check the name and the connection; "
            "gated data sets need `hf auth login`; files that you have can be named by their path"
        ) from error
    yield from _data_set_rows(data, str(wanted), wanted.split)


def hub_name(text: str) -> HubName | None:
    """The data set that a text names; None if it names none."""
    short, _, split = text.partition("@")
    if short in SHORT_NAMES:
        return replace(SHORT_NAMES[short], split=split) if split else SHORT_NAMES[short]
    found = _NAME.fullmatch(text)
    return HubName(found["name"], found["config"], found["split"]) if found else None


def is_data_file(path: Path) -> bool:
    """Whether `read_rows` reads files with this suffix."""
    return _suffix(path) in _READERS


def _suffix(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _open(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _json_lines(path: Path) -> Iterator[Row]:
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(
                    f"{path}:{number}: not JSON: {error}. A .jsonl file holds one JSON object per line"
                ) from error
            yield _json_row(f"{path}:{number}", value)


def _json(path: Path) -> Iterator[Row]:
    """The objects of a list, of a list that is the only value of an object, or of lines."""
    with _open(path) as file:
        text = file.read()
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        yield from _json_lines(path)  # many `.json` files of data sets hold one object per line
        return
    if isinstance(whole, dict):
        only = next(iter(whole.values())) if len(whole) == 1 else None
        is_list = isinstance(only, list) and all(isinstance(item, dict) for item in only)
        whole = only if is_list else [whole]
    if not isinstance(whole, list):
        raise UsageError(f"{path}: a .json file of tasks holds a list of objects, or one object per line")
    for index, value in enumerate(whole):
        yield _json_row(f"{path}, item {index}", value)


def _json_row(place: str, value: object) -> Row:
    if not isinstance(value, dict):
        raise UsageError(f"{place}: a row is a JSON object with column names as keys")
    return Row(place, value)


def _csv(path: Path) -> Iterator[Row]:
    csv.field_size_limit(_LONGEST_FIELD)
    with _open(path) as file:
        cells = csv.DictReader(file, strict=True)
        try:
            for row in cells:
                place = f"{path}:{cells.line_num}"
                if None in row or None in row.values():
                    raise UsageError(f"{place}: not as many cells as the first row has")
                yield Row(place, row)
        except csv.Error as error:
            raise UsageError(f"{path}:{cells.line_num}: not CSV: {error}") from error


def _parquet(path: Path) -> Iterator[Row]:
    require_packages(f"{path}: parquet", ["pyarrow"], "eval")
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
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
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}


def _data_set_rows(data: Any, place: str, split: str | None) -> Iterator[Row]:
    """The rows of a split; without one, of the only split or the usual one."""
    if hasattr(data, "keys"):
        names = list(data.keys())
        usual = names if len(names) == 1 else [name for name in _USUAL_SPLITS if name in names]
        wanted = split or next(iter(usual), None)
        if wanted not in names:
            raise UsageError(f"{place}: choose a split, one of {', '.join(names)}: {place.partition('@')[0]}@SPLIT")
        data = data[wanted]
    for index, values in enumerate(data):
        yield Row(f"{place}, row {index}", values)
