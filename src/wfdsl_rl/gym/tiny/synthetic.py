"""Synthetic workflows for SFT: well-formed, of many shapes, with workers drawn at random.

A model of random weights must learn the format of a completion, and to read what a choice could depend on, before
rewards mean anything; but nothing about which choice is good. So shapes and workers are drawn with a bias that depends
on the kind of question and has nothing to do with what is right.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from wfdsl.conductor.listing import WorkerListing
from wfdsl.language.literals import quoted
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.gym.tiny.reasoning_prefix import (
    KEEP,
    Format,
    annotation,
    by_advertisement,
    named,
    placed,
    shows_doubt,
)

WORDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "P": ("Plan it.", "Write a short plan.", "Plan the steps, do not solve."),
    "S": ("Solve it.", "Solve the question step by step.", "Answer the question."),
    "F": ("Use the plan.", "Follow the plan and solve it.", "Use the plan to answer."),
    "V": ("Check it.", "Check the answer, fix mistakes.", "Verify it step by step."),
    "C": ("Combine the answers.", "Compare the answers and give the best.", "Aggregate the answers into one."),
}
"""The subtasks of each role: plan, solve, follow a plan, verify, combine."""

SHAPES: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("S",),
    2: ("PF", "SV"),
    3: ("PFV", "SVV", "SSC"),
    4: ("PFVV", "PFFC", "SSSC", "SVVV"),
    5: ("PFVVV", "PFFFC", "SSSSC", "PFFCV", "SSSCV"),
}
"""Shapes by their number of steps, a letter a step."""

REVISIONS: Final = ("V", "VV", "S", "SV", "PFV")
"""Shapes of a second round. A verifier in the first place sees the previous round's answer."""

_EMPTY_LISTS: Final = "model_id = []\nsubtasks = []\naccess_list = []"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticWorkflows:
    """The distribution of synthetic workflows."""

    lengths: Mapping[int, float] = field(default_factory=lambda: {1: 1.0, 2: 2.0, 3: 4.0, 4: 3.0})
    """Weights by the number of steps."""
    wordings: int = 1
    """How many wordings of each role are drawn from. A choice without effect on the answer adds noise to the gradient
    of those that have one: with one wording a small model learns to choose workers in fewer iterations."""
    bias: float = 0.7
    """How strongly shapes and workers depend on the kind of question, and workers on the role: the standard deviation
    of the logarithms of their weights. The direction is drawn from `seed` and has nothing to do with skill. But a model
    that never had to look at the kind when it names a worker hardly learns to from rewards."""
    seed: int = 0
    """The seed of the bias."""
    form: Format = "sketch"
    """The format of the reasoning prefix. With `roles`, only workers that it names are used."""

    def completion(self, rng: random.Random, offer: WorkerListing, kind: str) -> str:
        """A completion for a question of a kind."""
        return self._completion(rng, offer, kind, (), self._shape(rng, kind))

    def revision(
        self, rng: random.Random, offer: WorkerListing, kind: str, signs: Sequence[str], heuristic: float | None = None
    ) -> str:
        """A completion for a second round, which keeps the previous answer in about half of the cases.

        `signs` are what that answer shows, and the bias of keeping depends on them. Or a fraction `heuristic` of the
        completions revises an answer that shows doubt, and keeps any other.
        """
        said = ",".join(signs)
        revisions = [self._weight(said, shape) for shape in REVISIONS]
        keeping = self._weight(said, KEEP) * len(REVISIONS)
        if heuristic is not None:
            part = 1 - heuristic if shows_doubt(signs) else heuristic
            keeping = sum(revisions) * part / (1 - part)
        (shape,) = rng.choices((KEEP, *REVISIONS), [keeping, *revisions])
        return self._completion(rng, offer, kind, signs, shape)

    def _completion(self, rng: random.Random, offer: WorkerListing, kind: str, signs: Sequence[str], shape: str) -> str:
        asked = named(offer, kind) if self.form == "roles" else by_advertisement(offer, kind)
        roles = "" if shape == KEEP else shape
        workflow = self._filled(rng, roles, asked, kind)
        return self.text(offer, kind, signs, shape, workflow if roles else None)

    def text(self, offer: WorkerListing, kind: str, signs: Sequence[str], shape: str, workflow: Workflow | None) -> str:
        """The text of a workflow: its prefix and the lists; None keeps the previous round's answer."""
        lists = _EMPTY_LISTS if workflow is None else short_lists(workflow)
        ranked = by_advertisement(offer, kind)
        prefix = annotation(self.form, kind, ranked, signs)
        if self.form == "none":
            return lists
        if self.form != "kind":
            prefix = f"{prefix} {shape}"
        if self.form == "roles":
            places = [ranked.index(int(step.worker)) for step in workflow or ()]
            prefix = " ".join([prefix, *placed(places, ranked)])
        return f"{prefix}\n{lists}"

    def _shape(self, rng: random.Random, kind: str) -> str:
        lengths = sorted(self.lengths)
        length = rng.choices(lengths, [self.lengths[each] for each in lengths])[0]
        shapes = SHAPES[length]
        return rng.choices(shapes, [self._weight(kind, shape) for shape in shapes])[0]

    def _weight(self, kind: str, *choice: object) -> float:
        """The weight of a choice for a kind of question."""
        return math.exp(self.bias * _leaning(self.seed, kind, *choice))

    def _filled(self, rng: random.Random, roles: str, ranked: Sequence[int], kind: str) -> Workflow:
        """A workflow of a shape, with workers and wordings drawn at random."""
        steps = []
        for at, role in enumerate(roles):
            (worker,) = rng.choices(ranked, [self._weight(kind, role, place) for place in range(len(ranked))])
            steps.append(Step(worker, rng.choice(WORDINGS[role][: self.wordings]), _access(roles, at)))
        return Workflow(tuple(steps))


@lru_cache(maxsize=4096)
def _leaning(seed: int, *choice: object) -> float:
    """A standard normal number that the arguments fix."""
    return random.Random(f"habit:{seed}:" + ":".join(map(str, choice))).gauss(0.0, 1.0)


def short_lists(workflow: Workflow) -> str:
    """The three lists, one per line, in few tokens."""
    lists = workflow.to_lists()
    subtasks = ", ".join(quoted(subtask) for subtask in lists["subtasks"])
    access = ", ".join('"all"' if entry == ALL else str(entry) for entry in lists["access_list"])
    return f"model_id = {lists['model_id']}\nsubtasks = [{subtasks}]\naccess_list = [{access}]"


def _access(shape: str, at: int) -> Access:
    """The access of a step: a follower sees the plan, a verifier the attempt before it, a combiner everything.

    A verifier in the first place sees the previous round's answer.
    """
    role = shape[at]
    if role == "C":
        return ALL
    if role == "V":
        return (at - 1,) if at else ALL
    return (shape.index("P"),) if role == "F" else ()
