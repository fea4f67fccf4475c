"""Reasoning prefixes: the line before the lists, which annotates the prompt and plans the workflow.

A prefix says what can be read from the prompt (its annotation): the question's kind, the workers that are advertised
most for it, in a second round what the first answer shows, and if the prompt says an effort, that and the family of
the question. Then it names the shape of the workflow, one token that decides everything after it. With roles, it also
says which worker gets which role, by place in the order of advertisement, so that what rewards teach holds under any
numbering.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from string import ascii_lowercase
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wfdsl.conductor.listing import WorkerListing
from wfdsl_rl.gym.world.replies import signs_in

Format: TypeAlias = Literal["sketch", "roles", "none"]

KEEP: Final = "keep"
"""Instead of a shape: three empty lists keep the previous round's answer."""

_ADVERTISED: Final = re.compile(r"(\w+) (\d+)")
_SHAPE: Final = re.compile(f"[PSFVRCDAE]+|{KEEP}")
"""A shape has a letter per step; see `synthetic`."""
_ASSIGNED: Final = re.compile(r"(?P<role>[PSFVRCDAElmno])[a-z](?P<worker>\d+)")
_NAMED: Final = 4
"""How many workers a prefix names, those that are advertised most. Our choice."""


class Asked(NamedTuple):
    """What a prompt asks, apart from its workers."""

    kind: str
    """The kind of question: what workers are advertised for."""
    family: str = ""
    """Its family, where the effort is said; empty: not named."""
    effort: str = ""
    """The effort that the prompt says; empty: none."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Asked:
        """What a training row's prompt asks."""
        return cls(row["kind"], row["family"] if row["effort"] else "", row["effort"])


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


def annotation(form: Format, asked: Asked, ranked: Sequence[int], signs: Sequence[str] = ()) -> str:
    """The annotation of a prompt: the words that its prefix begins with.

    Args:
        form: The prefix's format.
        asked: The kind of question, its family and the effort.
        ranked: The worker indices, in the order of advertisement.
        signs: What the previous round's answer shows, in a second round.
    """
    if form == "none":
        return ""
    letters = ascii_lowercase if form == "roles" else [""] * _NAMED
    listed = [f"{letter}{index}" for letter, index in zip(letters, ranked[:_NAMED], strict=False)]
    return " ".join([asked.kind, *listed, *signs, *filter(None, (asked.family, asked.effort))])


def correct_annotation(form: Format, asked: Asked, offer: WorkerListing, previous: Sequence[str] | None) -> str:
    """The correct annotation; `previous` is the final subtask and response of a first round."""
    return annotation(form, asked, by_advertisement(offer, asked.kind), signs_in(previous[1]) if previous else ())


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


def assigned(roles: Iterable[str], places: Sequence[int], ranked: Sequence[int]) -> list[str]:
    """Who gets which role, a word for each step: `Pa2` has the worker advertised most, with index 2, write a plan.

    Without the letter of a role, the word is `a2`.
    """
    return [f"{role}{ascii_lowercase[place]}{ranked[place]}" for role, place in zip(roles, places, strict=True)]


def assigned_in(prefix: str) -> tuple[str, list[tuple[str, int]]] | None:
    """The shape that a prefix names, and the role and the worker of each step; None if they do not fit.

    The role of a verifier may be the letter of what it looks at.
    """
    *_, last = prefix.splitlines() or [""]
    shape, words = shape_in(last), last.split()
    found = [_ASSIGNED.fullmatch(word) for word in words[words.index(shape) + 1 :]] if shape else []
    roles = "".join(match["role"] if match else "?" for match in found)
    if not shape or re.sub(r"[a-z]", "V", roles) != shape:
        return None
    return shape, [(match["role"], int(match["worker"])) for match in found if match]
