"""A workflow as JSON: the whole graph, for whatever draws or counts elsewhere. Texts are as written, not shortened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Unpack

from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Workflow
from wfdsl.render.drawing import Card, Options, draw


def to_json(workflow: Workflow, **options: Unpack[Options]) -> str:
    """Write a workflow's graph as one JSON object.

    Keys: `title`, `description`, `steps` (objects with `index`, `name` or null, `worker`, `subtask`, `sees`, `access`,
    `live`, `conductor`, `depth`, and `status` where one is given), `edges` (pairs, one for each step that a step sees),
    `topology`, `depth`, `width`, `calls`, `answer` (the last step's index; null without steps).

    Raises:
        ValueError: `names` has not one name for each step.
    """
    drawing = draw(workflow, **options)
    names: Sequence[str | None] = options.get("names") or [None] * len(workflow)
    found = {
        "title": options.get("title", ""),
        "description": options.get("description", ""),
        "steps": [
            _step(card, name, subtask=step.subtask)
            for card, name, step in zip(drawing.cards, names, workflow, strict=True)
        ],
        "edges": [[seen, card.index] for card in drawing.cards for seen in card.sees],
        "topology": drawing.topology,
        "depth": drawing.depth,
        "width": drawing.width,
        "calls": drawing.calls,
        "answer": len(workflow) - 1 if len(workflow) else None,
    }
    return json.dumps(found, indent=2) + "\n"


def _step(card: Card, name: str | None, *, subtask: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "index": card.index,
        "name": name,
        "worker": card.worker,
        "subtask": subtask,
        "sees": list(card.sees),
        "access": ALL if card.access == ALL else list(card.access),
        "live": card.is_live,
        "conductor": card.is_conductor,
        "depth": card.depth,
    }
    return found if card.status is None else {**found, "status": asdict(card.status)}
