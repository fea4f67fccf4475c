"""What a warm-up shows: well-formed workflows of many shapes, with workers drawn at random.

A model of random weights has to learn the form of a completion before rewards mean anything, and to read what a choice
could depend on; but nothing about which choice is good. So shapes and workers are drawn with habits, which differ by
the kind of the question and have nothing to do with what is right. The sketch before the lists says what can be read
from the prompt, the question's kind and who is advertised most for it, and then the shape of the workflow: one token
that decides how everything behind it looks, and that rewards can move by itself. A sketch with places also says who
gets which role: the place of the worker in the order of advertisement, one token as well. Then nothing is chosen in the
lists, and what rewards teach is said of places and holds under any numbering.

Source: our choice. The paper starts from a model that can read, and can write the lists already.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from wfdsl.language.literals import quoted
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.gym.world.replies import signs_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wfdsl.conductor.listing import WorkerListing
    from wfdsl.language.tree import Access

WORDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "P": ("Plan it.", "Write a short plan.", "Plan the steps, do not solve."),
    "S": ("Solve it.", "Solve the question step by step.", "Answer the question."),
    "F": ("Use the plan.", "Follow the plan and solve it.", "Use the plan to answer."),
    "V": ("Check it.", "Check the answer, fix mistakes.", "Verify it step by step."),
    "C": ("Combine the answers.", "Compare the answers and give the best.", "Aggregate the answers into one."),
}
"""What is asked of each kind of step: plan, solve, follow a plan, verify, combine."""

SHAPES: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("S",),
    2: ("PF", "SV"),
    3: ("PFV", "SVV", "SSC"),
    4: ("PFVV", "PFFC", "SSSC", "SVVV"),
    5: ("PFVVV", "PFFFC", "SSSSC", "PFFCV", "SSSCV"),
}
"""Shapes by their number of steps, a letter a step."""

REVISIONS: Final = ("V", "VV", "S", "SV", "PFV")
"""Shapes of a further round. Who verifies first there sees the answer of the round before."""

KEEP: Final = "keep"
"""Stands for a shape where three empty lists keep the answer of the round before."""

Thought: TypeAlias = Literal["sketch", "places", "kind", "none"]

_ADVERTISED: Final = re.compile(r"(\w+) (\d+)")
_SHAPE: Final = re.compile(f"[{''.join(WORDINGS)}]+|{KEEP}")
_EMPTY_LISTS: Final = "model_id = []\nsubtasks = []\naccess_list = []"
_NAMED: Final = 4
"""So many workers are named in a sketch, those that are advertised most. Our choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """How often workflows of each kind are shown."""

    lengths: Mapping[int, float] = field(default_factory=lambda: {1: 1.0, 2: 2.0, 3: 4.0, 4: 3.0})
    """Weights by the number of steps."""
    wordings: int = 1
    """How many wordings of each kind of step are drawn from. A choice that makes no difference to the answer is noise
    in the gradient of those that do: with one wording a small model learns whom to ask in fewer iterations."""
    habits: float = 0.7
    """How much the choice of shapes and workers leans on the kind of the question, and that of workers on the kind of
    step: the spread of the logarithms of their weights. Which way it leans is drawn from `seed` and has nothing to do
    with who is good at what; but a model that has never had to look at the kind when it names a worker hardly learns to
    from rewards."""
    seed: int = 0
    """What the habits are drawn from."""
    thought: Thought = "sketch"
    """What stands before the lists: a sketch (the kind, who is advertised most for it and the shape); a sketch with
    places, which says who gets which role as well, and asks only whom it names; the kind alone; nothing."""

    def completion(self, rng: random.Random, offer: WorkerListing, kind: str) -> str:
        """A completion with a workflow drawn at random, for a question of this kind."""
        return self._completion(rng, offer, kind, (), self._shape(rng, kind))

    def revision(
        self, rng: random.Random, offer: WorkerListing, kind: str, signs: Sequence[str], sensible: float | None = None
    ) -> str:
        """A completion for a further round, which keeps the answer of the one before in about half of the cases.

        `signs` are what can be read from that answer. Keeping has habits too, which differ by the signs; or it is
        `sensible` in this part of the cases: an answer that admits a doubt is revised, and another one is kept.
        """
        said = ",".join(signs)
        revisions = [self._habit(said, shape) for shape in REVISIONS]
        keeping = self._habit(said, KEEP) * len(REVISIONS)
        if sensible is not None:
            part = 1 - sensible if admits_doubt(signs) else sensible
            keeping = sum(revisions) * part / (1 - part)
        (shape,) = rng.choices((KEEP, *REVISIONS), [keeping, *revisions])
        return self._completion(rng, offer, kind, signs, shape)

    def any_shape(self, key: object) -> str:
        """One of the shapes that are shown at all, all of them as likely; the same for the same key."""
        shapes = [shape for length in sorted(self.lengths) if self.lengths[length] for shape in SHAPES[length]]
        return random.Random(f"shape:{self.seed}:{key}").choice(shapes)

    def _completion(self, rng: random.Random, offer: WorkerListing, kind: str, signs: Sequence[str], shape: str) -> str:
        asked = named(offer, kind) if self.thought == "places" else by_advertisement(offer, kind)
        roles = "" if shape == KEEP else shape
        workflow = self._filled(rng, roles, asked, kind)
        return self.told(offer, kind, signs, shape, workflow if roles else None)

    def told(self, offer: WorkerListing, kind: str, signs: Sequence[str], shape: str, workflow: Workflow | None) -> str:
        """A workflow in words: the thought, and then the lists; None keeps the answer of the round before."""
        lists = _EMPTY_LISTS if workflow is None else short_lists(workflow)
        ranked = by_advertisement(offer, kind)
        thought = reading_of(self.thought, kind, ranked, signs)
        if self.thought == "none":
            return lists
        if self.thought != "kind":
            thought = f"{thought} {shape}"
        if self.thought == "places":
            places = [ranked.index(int(step.worker)) for step in workflow or ()]
            thought = " ".join([thought, *placed(places, ranked)])
        return f"{thought}\n{lists}"

    def _shape(self, rng: random.Random, kind: str) -> str:
        lengths = sorted(self.lengths)
        length = rng.choices(lengths, [self.lengths[each] for each in lengths])[0]
        shapes = SHAPES[length]
        return rng.choices(shapes, [self._habit(kind, shape) for shape in shapes])[0]

    def _habit(self, kind: str, *choice: object) -> float:
        """The weight of a choice for a kind of question."""
        return math.exp(self.habits * _leaning(self.seed, kind, *choice))

    def _filled(self, rng: random.Random, roles: str, ranked: Sequence[int], kind: str) -> Workflow:
        """The workflow of a shape: who gets which role, and wordings, are drawn at random."""
        steps = []
        for at, role in enumerate(roles):
            (worker,) = rng.choices(ranked, [self._habit(kind, role, place) for place in range(len(ranked))])
            steps.append(Step(worker, rng.choice(WORDINGS[role][: self.wordings]), _access(roles, at)))
        return Workflow(tuple(steps))


def admits_doubt(signs: Sequence[str]) -> bool:
    """Whether something speaks against an answer that shows these signs, and no check for it."""
    return bool(signs) and "passes" not in signs


def by_advertisement(offer: WorkerListing, kind: str) -> list[int]:
    """The ordinals on offer, those whose description has the highest number behind the kind's name first.

    Equal ones, and those that say nothing, stand in the offer's order.
    """
    told = [dict(_ADVERTISED.findall(description)) for description in offer.descriptions]
    numbers = {ordinal: int(says.get(kind, 0)) for ordinal, says in zip(offer.ordinals, told, strict=True)}
    return sorted(offer.ordinals, key=lambda ordinal: -numbers[ordinal])


def reading_of(thought: Thought, kind: str, ranked: Sequence[int], signs: Sequence[str] = ()) -> str:
    """What a thought says of its prompt, before anything is chosen: the words that it begins with.

    Args:
        thought: What stands before the lists.
        kind: The question's.
        ranked: The ordinals on offer, in the order of advertisement.
        signs: What the answer of the round before shows, in a further round.
    """
    asked = ranked[:_NAMED]
    match thought:
        case "sketch":
            return " ".join([kind, *map(str, asked), *signs])
        case "places":
            return " ".join([kind, *placed(range(len(asked)), asked), *signs])
        case "kind":
            return f"A {kind} question."
    return ""


def true_reading(thought: Thought, kind: str, offer: WorkerListing, previous: Sequence[str] | None) -> str:
    """What a thought says that is right; `previous` is the final pair of the round before, in a further round."""
    return reading_of(thought, kind, by_advertisement(offer, kind), signs_in(previous[1]) if previous else ())


def reading_in(completion: str) -> str:
    """What a completion says of its prompt, true or not: the words of its first line that stand before the shape."""
    words = completion.partition("\n")[0].split()
    return " ".join(takewhile(lambda word: not _SHAPE.fullmatch(word), words))


def shape_in(completion: str) -> str:
    """The shape that a completion's thought says; nothing if it says none."""
    words = completion.partition("\n")[0].split()
    return next((word for word in words if _SHAPE.fullmatch(word)), "")


def named(offer: WorkerListing, kind: str) -> list[int]:
    """The ordinals that a thought names: those that are advertised most for the kind."""
    return by_advertisement(offer, kind)[:_NAMED]


def placed(places: Iterable[int], ranked: Sequence[int]) -> list[str]:
    """Workers by place and ordinal: `a2` is the one advertised most, who has the ordinal 2; `b0` the next."""
    return [f"{ascii_lowercase[place]}{ranked[place]}" for place in places]


@lru_cache(maxsize=4096)
def _leaning(seed: int, *choice: object) -> float:
    """A standard normal number that the arguments fix."""
    return random.Random(f"habit:{seed}:" + ":".join(map(str, choice))).gauss(0.0, 1.0)


def short_lists(workflow: Workflow) -> str:
    """The three lists, one to a line and in as few tokens as may be."""
    lists = workflow.to_lists()
    subtasks = ", ".join(quoted(subtask) for subtask in lists["subtasks"])
    access = ", ".join('"all"' if entry == ALL else str(entry) for entry in lists["access_list"])
    return f"model_id = {lists['model_id']}\nsubtasks = [{subtasks}]\naccess_list = [{access}]"


def _access(shape: str, at: int) -> Access:
    """What a step sees: a follower the plan, a verifier the attempt before it, a combiner everything.

    A verifier in the first place sees the answer of the round before.
    """
    role = shape[at]
    if role == "C":
        return ALL
    if role == "V":
        return (at - 1,) if at else ALL
    return (shape.index("P"),) if role == "F" else ()
