"""Lettered options of choice questions: how they are written and read, and which letter is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from wfdsl_rl.gym.world.families.form import Answer, RandomStream

LETTERS = "ABCD"
_LAYOUTS = (
    " A) {} B) {} C) {} D) {}",
    "\nA) {}\nB) {}\nC) {}\nD) {}",
    " (A) {} (B) {} (C) {} (D) {}",
    "\nA. {}\nB. {}\nC. {}\nD. {}",
)
_READERS = tuple(re.compile(re.escape(layout).replace(r"\{\}", r"([^\n]{1,40}?)")) for layout in _LAYOUTS)

PATTERN = r"[ \n]\(?A[).] [^\n]+(?:\n[^\n]+){0,3}"
"""The options with the space or line break before them, as one field of a wording."""


def written(rng: RandomStream, truth: str, distractors: Sequence[str]) -> str:
    """The options in random order and layout."""
    return rng.pick(_LAYOUTS).format(*rng.shuffled([truth, *distractors[:3]]))


def read(text: str) -> tuple[str, ...] | None:
    """The four options; None unless there are four different ones."""
    for pattern in _READERS:
        found = pattern.fullmatch(text)
        if found and len(set(found.groups())) == len(LETTERS):
            return found.groups()
    return None


def chosen(
    text: str, is_right: Callable[[str], bool], *, load: float, distance: Callable[[str], float] | None = None
) -> Answer | None:
    """The answer to a choice question; None unless exactly one option is right.

    Wrong letters come by distance of their options from the truth, the nearest first, else as the text fixes it.
    """
    options = read(text)
    if options is None:
        return None
    right = [letter for letter, option in zip(LETTERS, options, strict=True) if is_right(option)]
    if len(right) != 1:
        return None
    others = [letter for letter in RandomStream(text).shuffled(LETTERS) if letter not in right]
    if distance is not None:
        others.sort(key=lambda letter: distance(options[LETTERS.index(letter)]))
    return Answer(right[0], tuple(others), load, choices=options)
