"""The questions: four kinds, each with a few wordings, whose true answers are computed from the text alone.

A question is read back from its text, so workers need no list of questions. The wordings of the split `test` are never
asked in training. All numbers and words are our choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from random import Random
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["sums", "dates", "words", "animals"]
Split: TypeAlias = Literal["train", "test"]
KINDS: Final[tuple[Kind, ...]] = ("sums", "dates", "words", "animals")
SPLITS: Final[tuple[Split, ...]] = ("train", "test")
WRONG_ANSWERS: Final = {"sums": 7, "dates": 6, "words": 7, "animals": 2}
"""How many different wrong answers a question of each kind has."""

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ANIMALS: Final = ("ant", "mouse", "cat", "dog", "sheep", "pig", "horse", "rhino", "elephant", "whale")
"""From light to heavy."""
_WORDS: Final = tuple(
    re.findall(
        r"\w+",
        "anchor basket bridge candle carpet castle copper corner cotton desert dragon engine fabric finger "
        "forest garden ginger guitar hammer harbor island jacket jungle kettle ladder lemon magnet marble "
        "market meadow mirror monkey mountain needle orange oyster palace pencil pepper pirate planet pocket "
        "puzzle rabbit ribbon rocket saddle salmon shadow silver spider spring stable summer temple thunder "
        "ticket tunnel turtle velvet violin walnut window winter ",
    )
)
_NAMES: Final = ("Mia", "Sam", "Ada", "Leo", "Eva", "Tom", "Ida", "Max")

_WORDINGS: Final[dict[Kind, dict[Split, tuple[str, ...]]]] = {
    "sums": {
        "train": (
            "{name} has {a} boxes with {b} pens each and gives away {c} pens. How many pens are left?",
            "{name} buys {a} bags of {b} apples and eats {c} of them. How many apples remain?",
            "A hall has {a} rows of {b} seats, and {c} seats are taken. How many seats are free?",
            "{name} earns {b} coins a day for {a} days and spends {c} coins. How many coins does {name} have?",
            "A baker fills {a} trays with {b} rolls each and sells {c} rolls. How many rolls does the baker keep?",
        ),
        "test": (
            "A farm has {a} pens with {b} hens each. Then {c} hens are sold. How many hens stay on the farm?",
            "{name} reads {b} pages on each of {a} evenings. {c} pages have pictures. How many have none?",
        ),
    },
    "dates": {
        "train": (
            "Today is {day}. Which day of the week is it in {n} days?",
            "A parcel that is sent on a {day} arrives {n} days later. On which weekday does it arrive?",
            "The meeting was on a {day}. The next one is {n} days after it. Which weekday is that?",
            "If yesterday was {day}, which day of the week comes {n} days after yesterday?",
            "A holiday of {n} days begins on a {day}. On which weekday is the first day after it?",
        ),
        "test": (
            "The concert on {day} is moved by {n} days to a later date. On which day of the week is it now?",
            "{name} was born on a {day}. Which weekday was it when {name} was {n} days old?",
        ),
    },
    "words": {
        "train": (
            'Spell the word "{word}" backwards.',
            'What is "{word}" when its letters are read from right to left?',
            'Reverse the letters of "{word}".',
            'Write "{word}" in reverse order, letter by letter.',
            'Turn the word "{word}" around so that its last letter comes first.',
        ),
        "test": (
            'How does "{word}" look in a mirror that swaps the order of its letters?',
            'Take the letters of "{word}" from the end to the start. Which string do you get?',
        ),
    },
    "animals": {
        "train": (
            "Which of these animals is the heaviest? (A) {x} (B) {y} (C) {z}",
            "Choose the animal that weighs the most: (A) {x} (B) {y} (C) {z}",
            "One of these three animals has the greatest weight. Which one? (A) {x} (B) {y} (C) {z}",
            "Pick the option with the heaviest animal. (A) {x} (B) {y} (C) {z}",
            "By weight, which animal comes first, from heavy to light? (A) {x} (B) {y} (C) {z}",
        ),
        "test": (
            "You must lift one of these animals. Which would be the hardest to lift? (A) {x} (B) {y} (C) {z}",
            "A scale shows the largest number for which animal? (A) {x} (B) {y} (C) {z}",
        ),
    },
}


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its answers."""

    kind: Kind
    text: str
    gold: str
    wrong: tuple[str, ...]
    """Every wrong answer that a worker may give, `WRONG_ANSWERS` of them."""
    choices: tuple[str, ...] = ()
    """The options, in the order of their letters."""


def draw(kind: Kind, split: Split, seed: int) -> Iterator[Item]:
    """An endless series of different questions of a kind; the same seed gives the same one."""
    asked: set[str] = set()
    for at in count():
        random = Random(f"{kind}/{split}/{seed}/{at}")
        text = random.choice(_WORDINGS[kind][split]).format(**_FILLS[kind](random))
        if text not in asked or at > 100 * len(asked):  # then all are asked, and they are repeated
            asked.add(text)
            yield _known(text)


@lru_cache(maxsize=65536)
def read(text: str) -> Item | None:
    """The question of a text; None if it is not one of the gym's."""
    for kind, pattern in _PATTERNS:
        found = pattern.fullmatch(text)
        if found:
            return _READERS[kind](text, {name.rstrip("_"): value for name, value in found.groupdict().items()})
    return None


def _known(text: str) -> Item:
    item = read(text)
    assert item is not None  # it was written from a wording
    return item


def _sum(random: Random) -> dict[str, object]:
    a, b = random.randint(3, 30), random.randint(4, 40)
    return {"name": random.choice(_NAMES), "a": a, "b": b, "c": random.randint(1, a * b - 20 if a * b > 40 else 5)}


def _date(random: Random) -> dict[str, object]:
    return {"name": random.choice(_NAMES), "day": random.choice(DAYS), "n": random.randint(8, 200)}


def _word(random: Random) -> dict[str, object]:
    return {"word": random.choice(_WORDS)}


def _animals(random: Random) -> dict[str, object]:
    return dict(zip("xyz", random.sample(_ANIMALS, 3), strict=True))


_FILLS: Final[dict[Kind, Callable[[Random], dict[str, object]]]] = {
    "sums": _sum,
    "dates": _date,
    "words": _word,
    "animals": _animals,
}


def _read_sum(text: str, values: dict[str, str]) -> Item:
    gold = int(values["a"]) * int(values["b"]) - int(values["c"])
    return Item("sums", text, str(gold), tuple(str(gold + off) for off in (1, -1, 2, 10, -2, 5, -10)))


def _read_date(text: str, values: dict[str, str]) -> Item:
    at = DAYS.index(values["day"]) + int(values["n"])
    return Item("dates", text, DAYS[at % 7], tuple(DAYS[(at + off) % 7] for off in range(1, 7)))


def _read_word(text: str, values: dict[str, str]) -> Item:
    word = values["word"]
    gold = word[::-1]
    return Item("words", text, gold, tuple(_misspelt(gold, at) for at in range(7)))


def _misspelt(word: str, at: int) -> str:
    """The word with a letter lost or doubled."""
    place, lost = at % 4, at < 4
    return word[:place] + word[place + 1 :] if lost else word[: place + 1] + word[place:]


def _read_animals(text: str, values: dict[str, str]) -> Item:
    options = tuple(values[name] for name in "xyz")
    best = max(range(3), key=lambda at: _ANIMALS.index(options[at]))
    wrong = tuple("ABC"[at] for at in range(3) if at != best)
    return Item("animals", text, "ABC"[best], wrong, options)


_READERS: Final[dict[Kind, Callable[[str, dict[str, str]], Item]]] = {
    "sums": _read_sum,
    "dates": _read_date,
    "words": _read_word,
    "animals": _read_animals,
}

_FIELDS: Final = {
    "name": "|".join(_NAMES),
    "day": "|".join(DAYS),
    "word": "|".join(_WORDS),
    **dict.fromkeys("xyz", "|".join(_ANIMALS)),
    **dict.fromkeys(("a", "b", "c", "n"), r"\d{1,4}"),
}


def _pattern(wording: str) -> re.Pattern[str]:
    """What matches the texts of a wording; a field that occurs again must have the same value."""
    seen: set[str] = set()

    def group(found: re.Match[str]) -> str:
        name = found[1]
        if name in seen:
            return f"(?P={name}_)"
        seen.add(name)
        return f"(?P<{name}_>{_FIELDS[name]})"

    return re.compile(re.sub(r"\\\{(\w+)\\\}", group, re.escape(wording)))


_PATTERNS: Final = tuple(
    (kind, _pattern(wording)) for kind in KINDS for split in SPLITS for wording in _WORDINGS[kind][split]
)
