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
from importlib import import_module
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from wfdsl.errors import UsageError
from wfdsl.files import read_json_lines
from wfdsl.installation import require_packages

_LONGEST = 1 << 28  # bytes of a line, characters of a cell: LiveCodeBench has tests of megabytes
_PARQUET_BATCH = 256  # rows
_NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:#([^@]+))?(?:@(.+))?", re.ASCII)
_USUAL_SPLITS = ("test", "validation", "train")  # in this order if no split is named: our choice

Rows: TypeAlias = Iterator[tuple[str, Mapping[str, Any]]]
"""Where each row was read, such as `train.jsonl:17`, and its values by column."""

SHORT_NAMES: Mapping[str, str] = {
    "aime24": "HuggingFaceH4/aime_2024@train",
    "aime25": "math-ai/aime25@test",
    "bigcodebench": "bigcode/bigcodebench@v0.1.4",
    "bigcodebench-hard": "bigcode/bigcodebench-hard@v0.1.4",
    "gpqa-diamond": "Idavidrein/gpqa#gpqa_diamond@train",
    "gsm8k": "openai/gsm8k#main@test",
    "humaneval": "openai/openai_humaneval@test",
    # The first release, and what the sixth added.
    "livecodebench-v1": "livecodebench/code_generation_lite#test.jsonl@test",
    "livecodebench-v6": "livecodebench/code_generation_lite#test6.jsonl@test",
    "math": "DigitalLearningGmbH/MATH-lighteval@train",
    "math500": "HuggingFaceH4/MATH-500@test",
    "mbpp": "google-research-datasets/mbpp#full@test",
    "mmlu": "cais/mmlu#all@test",
    "rlpr": "openbmb/RLPR-Train-Dataset@train",
    "svamp": "ChilleD/SVAMP@test",
    "webinstruct": "TIGER-Lab/WebInstruct-verified@train",
}
"""Data sets of the paper and similar ones, by a short name; `@SPLIT` can be added to it."""


def hub_name(text: str) -> str | None:
    """The data set that a text names, as `OWNER/NAME#CONFIG@SPLIT`; None if it names none."""
    short, _, split = text.partition("@")
    if short in SHORT_NAMES:
        return f"{SHORT_NAMES[short].partition('@')[0]}@{split}" if split else SHORT_NAMES[short]
    return text if _NAME.fullmatch(text) else None


def read_hub(wanted: str) -> Rows:
    """The rows of a data set on the Hugging Face hub: of its split; without one, of the only split or the usual one.

    `wanted` is what `hub_name` gives. Of data sets with a loading script, which `datasets` no longer runs, a `.jsonl`
    file is read that stands in the place of the configuration.

    Raises:
        UsageError: `datasets` is not installed, or the data set cannot be loaded.
    """
    try:
        datasets = import_module("datasets")
    except ImportError as error:
        raise UsageError(f'{wanted}: a data set needs the package datasets: pip install "datasets>=5,<6"') from error
    name, config, split = (part or None for part in _NAME.findall(wanted)[0])
    try:
        if config and config.endswith(".jsonl"):
            data = datasets.load_dataset("json", data_files=f"hf://datasets/{name}/{config}", split="train")
        else:
            data = datasets.load_dataset(name, config, split=split)
    except Exception as error:  # names, configurations and the network: of httpx, OSErrors and others
        cause = " ".join(str(error).split())[:300]
        raise UsageError(
            f"{wanted}: cannot be loaded from the Hugging Face hub: {cause}. Check the name and the connection; "
            "gated data sets need `hf auth login`; files that you have can be named by their path"
        ) from error
    if hasattr(data, "keys"):  # of splits
        names = list(data.keys())
        split = next((name for name in _USUAL_SPLITS if name in names), None) if len(names) > 1 else names[0]
        if split is None:
            raise UsageError(f"{wanted}: choose a split, one of {', '.join(names)}: {wanted}@SPLIT")
        data = data[split]
    for index, values in enumerate(data):
        yield f"{wanted}, row {index}", values


def read_rows(path: Path) -> Rows:
    """The rows of a file, whose suffix says which format it has, or of the data files of a folder, ordered by name.

    Raises:
        UsageError: a file cannot be read, or does not have the format of its suffix; a folder has no data files.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if is_data_file(file) and not file.name.startswith("."))
        if not files:
            raise UsageError(f"{path}: the folder has no data files ({', '.join(_READERS)})")
        for file in files:
            yield from read_rows(file)
        return
    reader = _READERS.get(_suffix(path))
    if reader is None:
        raise UsageError(f"{path}: a file of tasks ends in {', '.join(_READERS)} (text formats also in .gz)")
    try:
        yield from reader(path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8") from error
    except (EOFError, zlib.error, OSError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def is_data_file(path: Path) -> bool:
    """Whether `read_rows` reads files with this suffix."""
    return _suffix(path) in _READERS


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _open(path: Path) -> IO[str]:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    return cast("IO[str]", opened(path, "rt", encoding="utf-8-sig", newline=""))


def _json_lines(path: Path) -> Rows:
    for number, values in read_json_lines(path, longest=_LONGEST):
        yield f"{path}:{number}", values


def _json(path: Path) -> Rows:
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
        whole = only if isinstance(only, list) else [whole]
    if not isinstance(whole, list) or not all(isinstance(row, dict) for row in whole):
        raise UsageError(f"{path}: a .json file of tasks holds a list of objects, or one object per line")
    for index, values in enumerate(whole):
        yield f"{path}, item {index}", values


def _csv(path: Path) -> Rows:
    csv.field_size_limit(_LONGEST)
    with _open(path) as file:
        cells = csv.DictReader(file, strict=True)
        try:
            for row in cells:
                place = f"{path}:{cells.line_num}"
                if None in row or None in row.values():
                    raise UsageError(f"{place}: not as many cells as the first row has")
                yield place, row
        except csv.Error as error:
            raise UsageError(f"{path}:{cells.line_num}: not CSV: {error}") from error


def _parquet(path: Path) -> Rows:
    require_packages(f"{path}: parquet", ["pyarrow"], "eval")
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    index = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH):
                for values in batch.to_pylist():
                    yield f"{path}, row {index}", values
                    index += 1
    except arrow.ArrowException as error:
        raise UsageError(f"{path}: not a parquet file: {error}") from error


_READERS: dict[str, Callable[[Path], Rows]] = {
    ".jsonl": _json_lines,
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}
