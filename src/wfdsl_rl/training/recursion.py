"""Recursion: groups whose completions revise the first rounds of an earlier iteration, each its own.

A row with `revises` names the row of its first rounds. Its completion at place k continues the conversation of that
row's completion at place k, with the answer that it got. Every first round is trained on in its own iteration and
revised in a later one, so none is written or run for the revision alone. Source of forced rounds: arXiv 2512.04388,
section 4; that they are those of an earlier iteration is our choice.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wfdsl_rl.training.config import GrpoStage
from wfdsl_rl.training.plan import Setup


class FirstRound(NamedTuple):
    """A completion, and the final (subtask, response) of its workflow; None without an answer."""

    completion: str
    pair: tuple[str, str] | None


class FirstRounds:
    """Makes the rows of second rounds, from the samples that a stage keeps; so an interrupted stage resumes alike."""

    def __init__(self, setup: Setup, stage: GrpoStage, samples: Path) -> None:
        self._setup = setup
        self._stage = stage
        self._samples = samples
        self._known: tuple[Any, list[dict[str, Any]]] = (None, [])

    def revised(self, rows: list[dict[str, Any]], step: int) -> list[dict[str, Any]]:
        """The rows of this process's part of a batch, with the prompts of second rounds."""
        key = (step, [row["row"] for row in rows])
        if self._known[0] != key:  # the trainer asks once for each pass of an iteration

            async def work(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
                return self._second_rounds(every, step)

            found, own = asyncio.run(self._setup.processes.on_all(rows, work))
            self._known = (key, found[own])
        return self._known[1]

    def _second_rounds(self, rows: Sequence[dict[str, Any]], step: int) -> list[dict[str, Any]]:
        seen = Counter[int]()
        read: dict[Path, dict[int, list[FirstRound]]] = {}
        made = []
        for row in rows:
            place = seen[row["row"]]
            seen[row["row"]] += 1
            if row["revises"] is None:
                made.append(row)
                continue
            first = row["revises"] // self._stage.prompts_per_step
            name = f"eval-{step:06d}" if row["split"] == "eval" else f"step-{first:06d}"
            path = self._samples / f"{name}.jsonl.gz"
            if path not in read:
                read[path] = _first_rounds(path)
            made.append(self._second(row, read[path].get(row["revises"], []), place))
        return made

    def _second(self, row: dict[str, Any], rounds: Sequence[FirstRound], place: int) -> dict[str, Any]:
        """The row of a second round: of its own first round, or of the next one that has an answer.

        Without any answer to revise, it is a first round.
        """
        answered = [each for each in (*rounds[place:], *rounds[:place]) if each.pair is not None]
        if not answered:
            return {**row, "weight": self._stage.discount}
        completion, pair = answered[0]
        assert pair is not None  # that is how they were chosen
        asked = self._setup.prompt.revise(pair[1], max_steps=self._setup.max_steps, rounds_left=0)
        messages = [*row["prompt"], {"role": "assistant", "content": completion}, dict(asked)]
        return {**row, "prompt": messages, "previous": list(pair)}


def _first_rounds(path: Path) -> dict[int, list[FirstRound]]:
    """The samples of a file by row, in order."""
    found: dict[int, list[FirstRound]] = {}
    for line in gzip.decompress(path.read_bytes()).splitlines():
        kept: Mapping[str, Any] = json.loads(line)
        answered = kept["workflow"] is not None and kept["answer"] is not None
        pair = (kept["workflow"]["subtasks"][-1], kept["answer"]) if answered else None
        found.setdefault(kept["row"], []).append(FirstRound(kept["completion"], pair))
    return found
