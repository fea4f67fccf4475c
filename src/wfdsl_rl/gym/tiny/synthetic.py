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

from wfdsl.conductor.effort import EFFORTS
from wfdsl.conductor.listing import WorkerListing
from wfdsl.language.completion import print_completion
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.gym.tiny.reasoning_prefix import (
    KEEP,
    Asked,
    Format,
    annotation,
    assigned,
    assigned_in,
    by_advertisement,
    named,
    shape_in,
    shows_doubt,
)

WORDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "P": ("Plan it.", "Write a short plan.", "Plan the steps, do not solve."),
    "S": ("Solve it.", "Solve the question step by step.", "Answer the question."),
    "F": ("Use the plan.", "Follow the plan and solve it.", "Use the plan to answer."),
    "V": ("Check it.", "Check the answer, fix mistakes.", "Verify it step by step."),
    "C": ("Combine the answers.", "Compare the answers and give the best.", "Aggregate the answers into one."),
}
"""The subtasks of each role: plan, solve, follow a plan, verify, compare."""

PART_WORDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    **WORDINGS,
    "P": ("Plan it. Do not solve it.", *WORDINGS["P"][1:]),
    "C": ("Compare the answers.", *WORDINGS["C"][1:]),
    "R": ("Improve it.", "Improve the answer.", "Revise it and answer again."),
    "D": ("Do part {part}.", "Solve part {part}.", "Work out part {part}."),
    "A": ("Do part {part}.", "Solve part {part}.", "Work out part {part}."),
    "E": ("Solve it.", "Solve the rest.", "Give the whole answer."),
}
"""Those for questions in parts, also: revise (R); do a part that needs the part before (D), or one that needs no other
(A); and the end of a question whose parts are done (E)."""

CHECKS: Final[Mapping[str, str]] = {
    "l": "Check each step.",
    "m": "Check it. Do it again.",
    "n": "Check it. Some facts are needless.",
    "o": "Check it. Mind edge cases.",
}
"""What a verifier may be told to look at, by letter."""

_CHECKS: Final = {text: letter for letter, text in CHECKS.items()}

SHAPES: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("S",),
    2: ("PF", "SV"),
    3: ("PFV", "SVV", "SSC"),
    4: ("PFVV", "PFFC", "SSSC", "SVVV"),
    5: ("PFVVV", "PFFFC", "SSSSC", "PFFCV", "SSSCV"),
}
"""Shapes by their number of steps, a letter a step."""

PART_SHAPES: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("S",),
    2: ("PF", "SV", "SR", "DE", "AE"),
    3: ("PFV", "SVV", "SRR", "SSC", "DDE", "AAE", "DEV"),
    4: ("PFVV", "SSSC", "SVVV", "SRRR", "DDEV", "AAEV", "AAAE"),
    5: ("PFVVV", "SSSSC", "SVVVV", "SRRRR", "DDEVV", "AAEVV", "AAAEV", "SSSCV"),
}
"""Those for questions in parts."""

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
    parts: bool = False
    """Whether shapes and wordings are those for questions in parts, and the prefix has a letter for each role."""
    checks: bool = False
    """Whether verifiers are told what to look at, which may matter to the answer."""
    thrift: float = 0.0
    """How much shorter workflows are at lower efforts: their weights change by this factor's exponential for each step
    and effort. A pretrained model knows it from the words."""
    seed: int = 0
    """The seed of the bias."""
    form: Format = "sketch"
    """The format of the reasoning prefix. With `roles`, only workers that it names are used."""

    def completion(self, rng: random.Random, offer: WorkerListing, asked: Asked) -> str:
        """A completion for what is asked."""
        return self._completion(rng, offer, asked, (), self.shape(rng, asked))

    def revision(
        self,
        rng: random.Random,
        offer: WorkerListing,
        asked: Asked,
        signs: Sequence[str],
        heuristic: float | None = None,
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
        return self._completion(rng, offer, asked, signs, shape)

    def _completion(
        self, rng: random.Random, offer: WorkerListing, asked: Asked, signs: Sequence[str], shape: str
    ) -> str:
        ranked = named(offer, asked.kind) if self.form == "roles" else by_advertisement(offer, asked.kind)
        roles = "" if shape == KEEP else shape
        workflow = self._filled(rng, roles, ranked, asked)
        return self.text(offer, asked, signs, shape, workflow if roles else None)

    def text(
        self, offer: WorkerListing, asked: Asked, signs: Sequence[str], shape: str, workflow: Workflow | None
    ) -> str:
        """The text of a workflow: its prefix and the lists; None keeps the previous round's answer."""
        lists = _EMPTY_LISTS if workflow is None else short_lists(workflow)
        if self.form == "none":
            return lists
        ranked = by_advertisement(offer, asked.kind)
        prefix = f"{annotation(self.form, asked, ranked, signs)} {shape}"
        if self.form == "roles" and workflow is not None:
            places = [ranked.index(int(step.worker)) for step in workflow]
            roles = [self._letter(role, step.subtask) for role, step in zip(shape, workflow, strict=True)]
            prefix = " ".join([prefix, *assigned(roles, places, ranked)])
        return f"{prefix}\n{lists}"

    def _letter(self, role: str, subtask: str) -> str:
        """What a prefix says of a step besides its worker."""
        return _CHECKS.get(subtask, role) if self.parts else ""

    def shape(self, rng: random.Random, asked: Asked) -> str:
        """A shape for what is asked."""
        lengths = sorted(self.lengths)
        (length,) = rng.choices(lengths, [self.lengths[each] * self._thrift(asked, each) for each in lengths])
        shapes = shapes_of(length, parts=self.parts)
        return rng.choices(shapes, [self._weight(asked.family or asked.kind, shape) for shape in shapes])[0]

    @property
    def every_shape(self) -> list[str]:
        """All shapes that may be drawn."""
        return [shape for length in sorted(self.lengths) for shape in shapes_of(length, parts=self.parts)]

    def shapes(self, key: str, count: int, without: Sequence[str] = ()) -> list[str]:
        """Different shapes, drawn by their lengths only; a key has its own."""
        rng, drawn = random.Random(f"shapes:{self.seed}:{key}"), list[str]()
        weights = {
            shape: weight / len(shapes)
            for length, weight in self.lengths.items()
            for shapes in [shapes_of(length, parts=self.parts)]
            for shape in shapes
            if shape not in without
        }
        while len(drawn) < count:
            drawn += rng.choices([*weights], [*weights.values()])
            del weights[drawn[-1]]
        return drawn

    def _thrift(self, asked: Asked, length: int) -> float:
        """How much an effort favours a length: the lower the effort, the shorter."""
        above = EFFORTS.index(asked.effort) - (len(EFFORTS) - 1) / 2 if asked.effort else 0.0
        return math.exp(self.thrift * above * length)

    def _weight(self, kind: str, *choice: object) -> float:
        """The weight of a choice for a kind or family of questions."""
        return math.exp(self.bias * _leaning(self.seed, kind, *choice))

    def _filled(self, rng: random.Random, roles: str, ranked: Sequence[int], asked: Asked) -> Workflow:
        """A workflow of a shape, with workers and wordings drawn at random."""
        steps, kind = [], asked.family or asked.kind
        wordings = PART_WORDINGS if self.parts else WORDINGS
        for at, role in enumerate(roles):
            (worker,) = rng.choices(ranked, [self._weight(kind, role, place) for place in range(len(ranked))])
            wording, check = rng.randrange(self.wordings), ""
            if role == "V" and self.checks:
                (check,) = rng.choices([*CHECKS], [self._weight(kind, each) for each in CHECKS])
            subtask = CHECKS[check] if check else _subtask(wordings[role][wording], roles, at)
            steps.append(Step(worker, subtask, _access(roles, at)))
        return Workflow(tuple(steps))


def shapes_of(length: int, *, parts: bool) -> tuple[str, ...]:
    """The shapes of a number of steps; with `parts`, those for questions in parts."""
    return (PART_SHAPES if parts else SHAPES)[length]


@lru_cache(maxsize=4096)
def _leaning(seed: int, *choice: object) -> float:
    """A standard normal number that the arguments fix."""
    return random.Random(f"habit:{seed}:" + ":".join(map(str, choice))).gauss(0.0, 1.0)


def with_lists(prefix: str) -> str:
    """A prefix with a letter for each role, and the lists that it stands for; the prefix alone if there are none."""
    prefix = prefix.removesuffix("\n")
    if shape_in(prefix) == KEEP:
        return f"{prefix}\n{_EMPTY_LISTS}"
    found = assigned_in(prefix)
    if found is None:
        return prefix
    shape, words = found
    steps = (
        Step(worker, CHECKS.get(role) or _subtask(PART_WORDINGS[role][0], shape, at), _access(shape, at))
        for at, (role, worker) in enumerate(words)
    )
    return f"{prefix}\n{short_lists(Workflow(tuple(steps)))}"


def short_lists(workflow: Workflow) -> str:
    """The three lists, one per line, in few tokens."""
    return print_completion(workflow, compact=True).rstrip("\n")


def _access(shape: str, at: int) -> Access:
    """The access of a step: nothing that it does not need, because company distracts.

    A follower sees the plan; a verifier and a reviser the attempt before, or the previous round's answer if they are
    first; who compares, everything; a part the part before, if it needs that; the end all parts.
    """
    role, before = shape[at], shape[:at]
    if role == "C" or (role in "VR" and not at):
        return ALL
    if role in "VR" or (role == "D" and at):
        return (at - 1,)
    if role == "E":
        return tuple(range(before.index("A"), at)) if "A" in before else (at - 1,)
    return (before.index("P"),) if role == "F" else ()


def _subtask(wording: str, shape: str, at: int) -> str:
    """The subtask of a step: its role's wording, with the number of the part that it does."""
    return wording.format(part=shape[: at + 1].count(shape[at]))
