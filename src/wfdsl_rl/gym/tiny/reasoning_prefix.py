"""Reasoning prefixes: the line before the lists, which annotates the prompt and plans the workflow.

A prefix says what can be read from the prompt (its annotation): the question's kind, the workers that are advertised
most for it, and in a second round what the first answer shows. Then it names the shape of the workflow, one token that
decides everything after it. With roles, it also says which worker gets which role, by place in the order of
advertisement, so that what rewards teach holds under any numbering.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from string import ascii_lowercase
from typing import Final, Literal, TypeAlias

from wfdsl.conductor.listing import WorkerListing
from wfdsl_rl.gym.world.replies import signs_in

Format: TypeAlias = Literal["sketch", "roles", "kind", "none"]

KEEP: Final = "keep"
"""Instead of a shape: three empty lists keep the previous round's answer."""

_ADVERTISED: Final = re.compile(r"(\w+) (\d+)")
_SHAPE: Final = re.compile(f"[PSFVC]+|{KEEP}")
"""A shape has a letter per step; see `synthetic`."""
_NAMED: Final = 4
"""How many workers a prefix names, those that are advertised most. Our choice."""


def shows_doubt(signs: Sequence[str]) -> bool:
    """Whether something speaks against an answer with these signs, and no passed check for it."""
    return bool(signs) and "passes" not in signs


def by_advertisement(offer: WorkerListing, kind: str) -> list[int]:
    """The worker indices, by the number after the kind's name in their descriptions, highest first.

    Equal ones, and those without a number, keep their order.
    """
    advertised = [dict(_ADVERTISED.findall(description)) for description in offer.descriptions]
    numbers = {index: int(says.get(kind, 0)) for index, says in zip(offer.indices, advertised, strict=True)}
    return sorted(offer.indices, key=lambda index: -numbers[index])


def annotation(form: Format, kind: str, ranked: Sequence[int], signs: Sequence[str] = ()) -> str:
    """The annotation of a prompt: the words that its prefix begins with.

    Args:
        form: The prefix's format.
        kind: The question's kind.
        ranked: The worker indices, in the order of advertisement.
        signs: What the previous round's answer shows, in a second round.
    """
    asked = ranked[:_NAMED]
    match form:
        case "sketch":
            return " ".join([kind, *map(str, asked), *signs])
        case "roles":
            return " ".join([kind, *placed(range(len(asked)), asked), *signs])
        case "kind":
            return f"A {kind} question."
    return ""


def correct_annotation(form: Format, kind: str, offer: WorkerListing, previous: Sequence[str] | None) -> str:
    """The correct annotation; `previous` is the final subtask and response of a first round."""
    return annotation(form, kind, by_advertisement(offer, kind), signs_in(previous[1]) if previous else ())


def annotation_in(completion: str) -> str:
    """The annotation in a completion, correct or not: the words of its first line before the shape."""
    words = completion.partition("\n")[0].split()
    return " ".join(takewhile(lambda word: not _SHAPE.fullmatch(word), words))


def shape_in(completion: str) -> str:
    """The shape in a completion's prefix; empty: none."""
    words = completion.partition("\n")[0].split()
    return next((word for word in words if _SHAPE.fullmatch(word)), "")


def named(offer: WorkerListing, kind: str) -> list[int]:
    """The workers that a prefix names: those that are advertised most for the kind."""
    return by_advertisement(offer, kind)[:_NAMED]


def placed(places: Iterable[int], ranked: Sequence[int]) -> list[str]:
    """Workers by place and index: `a2` is the one advertised most, with index 2; `b0` is the next."""
    return [f"{ascii_lowercase[place]}{ranked[place]}" for place in places]
