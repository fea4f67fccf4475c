"""What a run was asked to do: enough to do it again. The journal keeps it, and a resumed run starts from it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wfdsl.interpreter.budget import UNLIMITED, Budget
from wfdsl.interpreter.record_json import workflow_from_list, workflow_to_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl.interpreter.context import Question, QuestionFor
    from wfdsl.language.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Plan:
    """A workflow, a question, and the settings that change what the workers are asked."""

    workflow: Workflow
    question: Question
    names: tuple[str, ...] | None = None
    pool: str = ""
    """The pool's name."""
    seed: int | None = None
    question_for: QuestionFor = "all"
    previous: tuple[str, str] | None = None
    """The final (subtask, response) of the round before."""
    run_dead_steps: bool = False
    max_depth: int = 1
    sample: str = ""
    """Tells the calls of this run apart from the same calls of others."""
    budget: Budget = UNLIMITED
    origin: Mapping[str, str] = field(default_factory=dict)
    """Where the caller found the workflow and the pool, in the caller's own words."""

    @property
    def title(self) -> str:
        """The question in one line."""
        question = self.question
        text = question if isinstance(question, str) else question[-1]["content"] if question else ""
        return " ".join(text.split())[:200].encode(errors="replace").decode()

    def settings(self) -> dict[str, Any]:
        """What a run's record says about how it was started."""
        budget = self.budget
        return {
            "seed": self.seed,
            "question_for": self.question_for,
            "previous": self.previous,
            "run_dead_steps": self.run_dead_steps,
            "max_depth": self.max_depth,
            "sample": self.sample,
            "budget": {"calls": budget.calls, "tokens": budget.tokens, "usd": budget.usd, "wall_s": budget.wall_s},
            "origin": dict(self.origin),
        }

    def to_json(self) -> str:
        """The plan as JSON text."""
        question = self.question
        plain = {
            "workflow": workflow_to_list(self.workflow),
            "question": question if isinstance(question, str) else [dict(message) for message in question],
            "names": self.names,
            "pool": self.pool,
            **self.settings(),
        }
        return json.dumps(plain)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The inverse of `to_json`."""
        plain = json.loads(text)
        plain["workflow"] = workflow_from_list(plain["workflow"])
        if not isinstance(plain["question"], str):
            plain["question"] = tuple(plain["question"])
        plain["previous"] = None if plain.get("previous") is None else tuple(plain["previous"])
        plain["names"] = None if plain["names"] is None else tuple(plain["names"])
        plain["budget"] = Budget(**plain["budget"])
        return cls(**plain)
