"""What a warm-up shows: well-formed workflows of many shapes, with workers drawn at random.

A model of random weights has to learn the form of a completion before rewards mean anything, but nothing about whom to
ask: shapes and workers are drawn with habits that have nothing to do with who is good at what. Only the thought before
the lists says something about the question, namely its kind, because a choice by kind needs somewhere to stand. It may
also say which worker does what, step by step; models of a few layers are slow to learn to copy that into the lists.

Source: our choice. The paper starts from a model that can write the lists already.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from wfdsl.syntax.printer import quoted
from wfdsl.tree import ALL
from wfdsl.workflow import Step, Workflow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl.tree import Access

WORDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "plan": ("Plan how to solve it.", "Write a short plan.", "Plan the steps, do not solve."),
    "solve": ("Solve it.", "Solve the question step by step.", "Answer the question."),
    "follow": ("Solve it with the plan.", "Follow the plan and solve it.", "Use the plan to answer."),
    "verify": ("Verify the answer and correct it.", "Check the answer, fix mistakes.", "Verify it step by step."),
    "combine": ("Combine the answers.", "Compare the answers and give the best.", "Aggregate the answers into one."),
}

SHAPES: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("S",),
    2: ("PF", "SV"),
    3: ("PFV", "SVV", "SSC"),
    4: ("PFVV", "PFFC", "SSSC", "SVSC", "SVVV"),
    5: ("PFFFC", "PFVVV", "SSSSC", "PFFCV", "SSSCV"),
}
"""Shapes by their number of steps, a letter a step: plan, solve, follow a plan, verify, combine."""

Thought: TypeAlias = Literal["steps", "kind", "none"]

_ROLES: Final = {"P": "plan", "S": "solve", "F": "follow", "V": "verify", "C": "combine"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """How often workflows of each length are shown."""

    lengths: Mapping[int, float] = field(default_factory=lambda: {1: 1.0, 2: 2.0, 3: 4.0, 4: 2.0})
    """Weights by the number of steps."""
    wordings: int = 1
    """How many wordings of each role are drawn from. A choice that makes no difference to the answer is noise in the
    gradient of those that do: with one wording a small model learns whom to ask in fewer iterations."""
    habits: float = 0.7
    """How much the choice of workers and shapes leans on the kind of the question: the spread of the logarithms of
    their weights. Which way it leans is drawn from `seed` and has nothing to do with who is good at what; but a model
    that has never had to look at the kind when it names a worker hardly learns to from rewards."""
    seed: int = 0
    """What the habits are drawn from."""
    thought: Thought = "kind"
    """What stands before the lists: the question's kind and who does what, the kind alone, or nothing."""

    def workflow(self, rng: random.Random, ordinals: Sequence[int], kind: str) -> Workflow:
        """A workflow drawn at random; the ordinals are those on offer."""
        return self._filled(rng, self._shape(rng, kind), ordinals, kind)

    def completion(self, rng: random.Random, ordinals: Sequence[int], kind: str) -> str:
        """A completion with a workflow drawn at random, for a question of this kind."""
        shape = self._shape(rng, kind)
        workflow = self._filled(rng, shape, ordinals, kind)
        return thought_of(self.thought, kind, shape, workflow) + short_lists(workflow)

    def _shape(self, rng: random.Random, kind: str) -> str:
        lengths = sorted(self.lengths)
        length = rng.choices(lengths, [self.lengths[each] for each in lengths])[0]
        shapes = SHAPES[length]
        return rng.choices(shapes, [self._habit(kind, shape) for shape in shapes])[0]

    def _habit(self, kind: str, choice: object) -> float:
        """The weight of a choice for a kind of question."""
        return math.exp(self.habits * _leaning(self.seed, kind, str(choice)))

    def _filled(self, rng: random.Random, shape: str, ordinals: Sequence[int], kind: str) -> Workflow:
        """A workflow of a shape, with workers and wordings drawn at random."""
        weights = [self._habit(kind, ordinal) for ordinal in ordinals]
        return Workflow(
            tuple(
                Step(
                    rng.choices(ordinals, weights)[0],
                    rng.choice(WORDINGS[_ROLES[role]][: self.wordings]),
                    _access(shape, at),
                )
                for at, role in enumerate(shape)
            )
        )


@lru_cache(maxsize=4096)
def _leaning(seed: int, kind: str, choice: str) -> float:
    """A standard normal number that the arguments fix."""
    return random.Random(f"habit:{seed}:{kind}:{choice}").gauss(0.0, 1.0)


def thought_of(thought: Thought, kind: str, shape: str, workflow: Workflow) -> str:
    """What stands before the lists, with the line breaks behind it."""
    if thought == "none":
        return ""
    if thought == "kind":
        return f"A {kind} question.\n"
    steps = ", ".join(f"{step.worker} {_ROLES[role]}" for step, role in zip(workflow, shape, strict=True))
    return f"A {kind} question: {steps}.\n"


def short_lists(workflow: Workflow) -> str:
    """The three lists, one to a line and in as few tokens as may be."""
    lists = workflow.to_lists()
    subtasks = ", ".join(quoted(subtask) for subtask in lists["subtasks"])
    access = ", ".join('"all"' if entry == ALL else str(entry) for entry in lists["access_list"])
    return f"model_id = {lists['model_id']}\nsubtasks = [{subtasks}]\naccess_list = [{access}]"


def _access(shape: str, at: int) -> Access:
    """What a step sees: a follower the plan, a verifier the attempt before it, a combiner everything."""
    role = shape[at]
    if role == "C":
        return ALL
    if role == "V":
        return (at - 1,)
    return (shape.index("P"),) if role == "F" else ()
