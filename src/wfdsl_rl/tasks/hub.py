"""Data sets of the Hugging Face hub by name, and folders that `datasets` has saved.

A name is `OWNER/NAME`, `OWNER/NAME#CONFIG`, each with `@SPLIT` or without, or one of the short names below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wfdsl.errors import UsageError
from wfdsl_rl.tasks.rows import Row, is_data_file, late, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:#(?P<config>[^@]+))?(?:@(?P<split>.+))?", re.ASCII)
_SAVED = ("dataset_dict.json", "state.json")  # what `save_to_disk` writes beside the data
_USUAL_SPLITS = ("test", "validation", "train")  # in this order if none is asked for: our choice


@dataclass(frozen=True, slots=True)
class HubName:
    """A data set of the hub, with the configuration and the part of it that are meant."""

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
"""Data sets of the paper and their like, by a short name; `@SPLIT` can be added to it."""


def hub_name(text: str) -> HubName | None:
    """What a name means on the hub; None if it is none."""
    short, _, split = text.partition("@")
    if short in SHORT_NAMES:
        return replace(SHORT_NAMES[short], split=split) if split else SHORT_NAMES[short]
    found = _NAME.fullmatch(text)
    return HubName(found["name"], found["config"], found["split"]) if found else None


def read_hub(wanted: HubName) -> Iterator[Row]:
    """The rows of a data set of the hub.

    Raises:
        UsageError: `datasets` is not installed, or the data set cannot be had.
    """
    datasets = _datasets(str(wanted))
    try:
        if wanted.files:
            data = datasets.load_dataset(
                "json", data_files=f"hf://datasets/{wanted.name}/{wanted.files}", split="train"
            )
        else:
            data = datasets.load_dataset(wanted.name, wanted.config, split=wanted.split)
    # Everything that `datasets` raises for names, configurations, splits and the network is one of these.
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"{wanted}: cannot be had from the Hugging Face hub: {_line(error)}. Check the name and the connection; "
            "gated data sets need `hf auth login`; files that you have can be named by their path"
        ) from error
    yield from _rows(_one_split(data, str(wanted), wanted.split), str(wanted))


def read_folder(path: Path, split: str | None = None) -> Iterator[Row]:
    """The rows of a folder: one that `datasets` saved, or one of data files, in the order of their names.

    Raises:
        UsageError: there are none, or no such part.
    """
    if any((path / name).exists() for name in _SAVED):
        datasets = _datasets(str(path))
        try:
            data = datasets.load_from_disk(str(path))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: cannot be read as a saved data set: {_line(error)}") from error
        yield from _rows(_one_split(data, str(path), split), str(path))
        return
    for file in _files(path, split):
        yield from read_rows(file)


def _files(path: Path, split: str | None) -> list[Path]:
    files = sorted(file for file in path.rglob("*") if file.is_file() and _holds_rows(file, path))
    chosen = [file for file in files if split is None or split in re.split(r"[^a-zA-Z0-9]+", file.name)]
    if not chosen:
        part = f" for the split {split!r}" if split else ""
        raise UsageError(f"{path}: the folder has no data files{part} (.jsonl, .json, .csv, .parquet)")
    return chosen


def _holds_rows(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    described = file.name.startswith("dataset_info") or file.name.endswith(".manifest.json")
    return is_data_file(file) and not hidden and not described


def _one_split(data: Any, place: str, split: str | None) -> Any:
    """The part that is asked for; without a wish, the only one or the usual one."""
    if not hasattr(data, "keys"):
        return data
    names = list(data.keys())
    if split is None and len(names) > 1:
        split = next((usual for usual in _USUAL_SPLITS if usual in names), None)
    wanted = names[0] if split is None and len(names) == 1 else split
    if wanted not in names:
        raise UsageError(
            f"{place}: say which split is meant, one of {', '.join(names)}: {place.partition('@')[0]}@SPLIT"
        )
    return data[wanted]


def _rows(data: Any, place: str) -> Iterator[Row]:
    for index, values in enumerate(data):
        yield Row(f"{place}, row {index}", values)


def _datasets(place: str) -> Any:
    return late("datasets", needed_for=f"{place}: a Hugging Face data set", install="datasets>=5,<6")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
