"""Tasks as the rows that training engines read: the Conductor's prompt, and what names the task when it is scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.files import write_whole
from wfdsl.installation import install_command
from wfdsl.tasks.rows import optional_module
from wfdsl_rl.reward import Reward
from wfdsl_rl.rows import Row

EngineRow: TypeAlias = dict[str, Any]
ENV_ID: Final = "wfdsl"
"""The name of the data source in verl, and of the environment in SkyRL."""


def verl_row(row: Row, kind: str) -> EngineRow:
    """A row of verl 0.9: `extra_info` comes back to the reward function."""
    return {
        "data_source": ENV_ID,
        "prompt": row["prompt"],
        "ability": kind,
        "reward_model": {"style": "rule", "ground_truth": row["task"]},
        "extra_info": _extra(row),
    }


def skyrl_row(row: Row, kind: str) -> EngineRow:
    """A row of SkyRL: everything but the prompt comes back to the environment."""
    return {
        "data_source": ENV_ID,
        "prompt": row["prompt"],
        "env_class": ENV_ID,
        "reward_spec": {"method": "rule", "ground_truth": row["task"]},
        "extra_info": {**_extra(row), "kind": kind},
    }


def http_row(row: Row, kind: str) -> EngineRow:  # noqa: ARG001  (one form for all engines)
    """A row for slime and OpenRLHF, whose requests to the reward server hold the label."""
    return {"prompt": row["prompt"], "label": row["task"]}


ENGINES: Final[Mapping[str, Callable[[Row, str], EngineRow]]] = {
    "verl": verl_row,
    "skyrl": skyrl_row,
    "slime": http_row,
    "openrlhf": http_row,
}


def engine_rows(reward: Reward, engine: str, *, split: str = "train") -> Iterator[EngineRow]:
    """The tasks of a reward as rows of an engine.

    Raises:
        UsageError: there is no such engine, or no worker can be offered.
    """
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine!r}; choose from {', '.join(ENGINES)}")
    everyone = sorted(reward.pool.indices)
    for row in reward.rows(split=split):
        if ENGINES[engine] is http_row and not list(row["shown"]) == list(row["true"]) == everyone:
            raise UsageError(f"rows of {engine} cannot say which workers a prompt lists: leave out pick and shuffle")
        yield ENGINES[engine](row, reward.tasks[row["task"]].kind)


def write_rows(path: Path, rows: Iterator[EngineRow]) -> int:
    """Write rows as JSON lines or, if the name ends in `.parquet`, as parquet; how many they are.

    Raises:
        UsageError: parquet is asked for, and pyarrow is not installed.
    """
    found = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix != ".parquet":
        write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found))
        return len(found)
    needed_for, install = f"{path}: parquet", f"{install_command('eval')}; or write .jsonl"
    arrow = optional_module("pyarrow", needed_for=needed_for, install=install)
    parquet = optional_module("pyarrow.parquet", needed_for=needed_for, install=install)
    parquet.write_table(arrow.Table.from_pylist(found), path)
    return len(found)


def _extra(row: Row) -> dict[str, Any]:
    return {"index": row["row"], **{name: row[name] for name in ("task", "split", "shown", "true")}}


def sample_of(extra: Mapping[str, Any], completion: str) -> dict[str, Any]:
    """What is scored, of the columns that an engine gives back; parquet readers make arrays of lists."""
    workers = {name: [int(each) for each in extra[name]] for name in ("shown", "true") if extra.get(name) is not None}
    return {"task": str(extra["task"]), "completion": completion, **workers}
