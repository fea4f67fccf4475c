"""Few-shot examples out of solved questions: right answers only, one for each shape of workflow.

A row is a line that `wfdsl solve --to` wrote, to which a grader has added whether the answer is right.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wfdsl.api import analyze
from wfdsl.conductor.example_sets import example_from
from wfdsl.graph import graph_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wfdsl.conductor.example_sets import Example


def harvest(rows: Iterable[dict[str, Any]], *, right: str = "right", most: int = 4) -> list[Example]:
    """The first example of each topology among the rows whose field `right` is true, `most` at most.

    Only first rounds count whose completion is strictly valid: an example teaches the format.
    """
    found: dict[str, Example] = {}
    for row in rows:
        example = _example(row) if row.get(right) is True else None
        if example is not None and len(found) < most:
            found.setdefault(graph_of(example.workflow).topology, example)
    return list(found.values())


def to_toml(name: str, examples: Iterable[Example]) -> str:
    """A set of examples as the file that `--examples` reads."""
    parts = [f"name = {json.dumps(name, ensure_ascii=False)}"]
    for example in examples:
        parts += [
            "",
            "[[examples]]",
            f"question = {_text(example.question)}",
            f"completion = {_text(example.completion)}",
        ]
    return "\n".join(parts) + "\n"


def _example(row: dict[str, Any]) -> Example | None:
    rounds = row.get("rounds") or [{}]
    if rounds[0].get("outcome") != "ran":
        return None
    completion = str(rounds[0]["completions"][-1]["text"])
    if analyze(completion, max_steps=None).workflow is None:
        return None
    return example_from(str(row["question"]).strip(), completion)


def _text(text: str) -> str:
    """A TOML string; over several lines where TOML can hold the text as it is."""
    if "'''" in text or text.endswith("'") or not all(char.isprintable() or char == "\n" for char in text):
        return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"'''\n{text}'''"
