"""A cell: what became of one task under one policy, once.

It is the line of `results.jsonl`, and holds everything that tables, comparisons and plots are made of, so that none of
them has to go back to the journal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from wfdsl.graph import graph_of
from wfdsl.interpreter.record import workflow_from_list, workflow_to_list
from wfdsl_rl.strategies import asked_steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl.language.workflow import Workflow

CellOutcome: TypeAlias = Literal["right", "wrong", "unjudged", "failed"]
"""`unjudged`: there is an answer that the grader could not judge. `failed`: there is no answer."""


class CellKey(NamedTuple):
    """What tells a cell from all others of an evaluation."""

    policy: str
    task: str
    """The task's name within the evaluation: its source and id."""
    repeat: int
    """From 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One result."""

    policy: str
    task: str
    task_hash: str
    """Tells tasks apart by what they ask and how they are judged, so that evaluations can be compared."""
    source: str
    domain: str
    repeat: int
    outcome: CellOutcome
    answer: str | None = None
    """The policy's answer as it stands."""
    extracted: str | None = None
    """What the grader took as the final answer."""
    reason: str = ""
    """Why it was judged so, or why there is no answer."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Includes thinking."""
    list_usd: float | None = 0.0
    """US dollars by the price list; None if a price is not known."""
    paid_usd: float | None = 0.0
    """US dollars paid, by all processes together; None if a price is not known."""
    latency_s: float | None = None
    """Seconds from question to answer; None if a part was answered from the journal."""
    calls: int = 0
    """Workers' answers, those inside Conductor nodes included."""
    completions: int = 0
    """What a Conductor wrote itself: workflows, and what it was asked to mend."""
    replayed: int = 0
    """Workers' answers that came from the journal."""
    workers: Mapping[str, int]
    """Answers by worker, by name."""
    rounds: tuple[Workflow, ...] = ()
    """The workflows that ran, one a round; one for a fixed workflow."""
    run_id: str = ""
    """The run in the journal."""

    @property
    def key(self) -> CellKey:
        """What tells it from all others."""
        return CellKey(self.policy, self.task, self.repeat)

    @property
    def judged(self) -> bool:
        """Whether it is right or wrong."""
        return self.outcome in ("right", "wrong")

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens

    @property
    def steps(self) -> int:
        """Live steps of all rounds that a worker is asked for."""
        return sum(len(asked_steps(workflow)) for workflow in self.rounds)

    @property
    def topology(self) -> str:
        """The topology class of the first round; empty if there was none."""
        return graph_of(self.rounds[0]).topology if self.rounds else ""

    def to_json(self) -> str:
        """The cell as one line; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        plain["workers"] = dict(self.workers)
        plain["steps"], plain["topology"] = self.steps, self.topology
        plain["rounds"] = [workflow_to_list(workflow) for workflow in self.rounds]
        text = json.dumps(plain, ensure_ascii=False)
        return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Cell:
        """The inverse of `to_json`, once the text has been parsed.

        Raises:
            KeyError, TypeError, ValueError: these are not a cell's values.
        """
        given = {name: plain[name] for name in _PLAIN}
        rounds = tuple(workflow_from_list(each) for each in plain["rounds"])
        return cls(**given, rounds=rounds, workers=dict(plain["workers"]))


_PLAIN = tuple(field.name for field in fields(Cell) if field.name not in ("rounds", "workers"))
