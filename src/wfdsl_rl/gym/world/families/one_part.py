"""Families of `gym/axes` whose questions have one part: sums, the largest number, needless facts, counts, long runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wfdsl_rl.gym.world.families import choice_options
from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream, other_numbers, other_texts
from wfdsl_rl.gym.world.families.strings import WORD, WORDS

_NUMBER: Final = r"\d{1,6}"


def _draw_sum(rng: RandomStream) -> dict[str, str]:
    first, second = rng.between(100, 9999), rng.between(100, 9999)
    return {"a": str(first), "b": str(second), "c": str(rng.between(2, first + second - 1))}


def _sum(fields: Fields) -> Answer | None:
    first, second, third = (int(fields[name]) for name in "abc")
    gold = first + second - third
    if gold < 0:
        return None
    wrong = other_numbers(gold, [first + second + third, gold + 10, gold + 100, gold - 10])
    return Answer(str(gold), wrong, sum(map(len, fields.values())))


SUMS = Family(
    "sums",
    "math",
    "Easy: one sum and one difference; exact.",
    (
        Form(
            "sum",
            dict.fromkeys("abc", _NUMBER),
            train=(
                "Add {a} and {b}, then take away {c}.",
                "Sum of {a} and {b}, less {c}?",
                "Take the sum of {a} and {b}. Take away {c}.",
                "The sum of {a} and {b} goes down by {c}. What is left?",
            ),
            test=("From the sum of {a} and {b} take away {c}.", "Add {b} to {a} and take away {c}."),
            draw=_draw_sum,
            answer=_sum,
            scale=(11.79, 0.74),
        ),
    ),
)


def _draw_largest(rng: RandomStream) -> dict[str, str]:
    first, *others = (rng.between(1000, 9999) for _ in range(4))
    return {"options": choice_options.written(rng, str(first), [str(one) for one in others])}


def _largest(fields: Fields) -> Answer | None:
    options = choice_options.read(fields["options"])
    if options is None or not all(option.isascii() and option.isdigit() for option in options):
        return None
    most = max(map(int, options))
    close = sum(10 * int(option) > 9 * most for option in options)
    return choice_options.chosen(
        fields["options"], lambda option: int(option) == most, load=close, distance=lambda option: most - int(option)
    )


LARGEST = Family(
    "largest",
    "choice",
    "Easy: the largest of four numbers; compared.",
    (
        Form(
            "largest",
            {"options": choice_options.PATTERN},
            train=(
                "Which is the largest number?{options}",
                "Find the largest number.{options}",
                "One of these numbers is the largest. Which one?{options}",
                "Which number is the largest of all?{options}",
            ),
            test=("The largest number is which one?{options}", "Of these, which is the largest number?{options}"),
            draw=_draw_largest,
            answer=_largest,
            scale=(1.34, 0.55),
        ),
    ),
)


_DECOY: Final = dict.fromkeys(("v", "h", "s", "c"), _NUMBER)


def _draw_decoy(rng: RandomStream) -> dict[str, str]:
    speed, hours, seats, cars = rng.between(20, 95), rng.between(3, 19), rng.between(20, 95), rng.between(3, 19)
    wrong = other_numbers(speed * hours, [speed * cars, seats * hours, seats * cars])
    fields = {"v": str(speed), "h": str(hours), "s": str(seats), "c": str(cars)}
    return {**fields, "options": choice_options.written(rng, str(speed * hours), wrong)}


def _decoy(fields: Fields) -> Answer | None:
    gold = int(fields["v"]) * int(fields["h"])
    load = sum(len(fields[name]) for name in "vhsc") + int(fields["h"]) / 4
    return choice_options.chosen(fields["options"], lambda option: option == str(gold), load=load)


DECOY = Family(
    "decoy",
    "choice",
    "Robustness: a product among needless facts, whose products are the other options; exact.",
    (
        Form(
            "distance",
            {**_DECOY, "options": choice_options.PATTERN},
            train=(
                "Needless facts: {s} seats, {c} cars. Speed {v}, hours {h}. How far?{options}",
                "Speed {v}, {s} seats, {c} cars, hours {h}, needless facts too. How far?{options}",
                "With needless facts: {c} cars of {s} seats go {h} hours at speed {v}. How far?{options}",
                "Mind needless facts. Speed {v}, {c} cars, hours {h}, {s} seats. How far do they go?{options}",
            ),
            test=(
                "Some are needless facts: {c} cars, {s} seats, speed {v}, hours {h}. How far?{options}",
                "How far? Hours {h}, {s} seats, speed {v}, {c} cars. Mind needless facts.{options}",
            ),
            draw=_draw_decoy,
            answer=_decoy,
            scale=(9.98, 1.72),
        ),
    ),
)


def _draw_tally(rng: RandomStream) -> dict[str, str]:
    words = rng.sample(WORDS, rng.between(6, 9))
    return {"letter": rng.pick("aeinorst"), "words": " ".join(words)}


def _tally(fields: Fields) -> Answer | None:
    words, letter = fields["words"], fields["letter"]
    gold = words.count(letter)
    near = (gold - 1, gold + 1, gold + 2, gold - 2, gold + 3)
    wrong = tuple(str(miss) for miss in near if miss >= 0)[:4]
    return Answer(str(gold), wrong, len(words) / 4 + gold)


TALLY = Family(
    "tally",
    "text",
    "Parallel attempts: a letter counted in many words, where slips are by chance; counted.",
    (
        Form(
            "tally",
            {"letter": "[a-z]", "words": f"{WORD}(?: {WORD}){{3,11}}"},
            train=(
                "Tally {letter} in: {words}.",
                "Make a tally of {letter} in: {words}.",
                "A tally of the letter {letter}: {words}.",
                "Tally every {letter}: {words}.",
            ),
            test=("Give the tally of {letter}: {words}.", "In these words tally {letter}: {words}."),
            draw=_draw_tally,
            answer=_tally,
            scale=(16.24, 3.22),
        ),
    ),
)


def _turned(word: str) -> str:
    return word[::-1]


def _ends(word: str) -> str:
    return word[-1:] + word[1:-1] + word[:1]


def _front(word: str) -> str:
    return word[1:] + word[:1]


def _back(word: str) -> str:
    return word[-1:] + word[:-1]


MOVES: Final[Mapping[str, Callable[[str], str]]] = {
    "turn": _turned,
    "swap": _ends,
    "left": _front,
    "right": _back,
}
"""What can be done with a word: turned around, its ends swapped, moved on by a letter to the left or the right."""
_MOVE: Final = "|".join(MOVES)


def moved(word: str, moves: list[str]) -> str:
    """The word after these moves."""
    for move in moves:
        word = MOVES[move](word)
    return word


def _draw_run(rng: RandomStream) -> dict[str, str]:
    moves = [rng.pick(tuple(MOVES)) for _ in range(rng.between(7, 11))]
    return {"word": rng.pick(WORDS), "moves": ", ".join(moves)}


def _long_run(fields: Fields) -> Answer | None:
    word, moves = fields["word"], fields["moves"].split(", ")
    gold = moved(word, moves)
    slips = [moved(word, moves[:-1]), moved(word, moves[1:]), moved(word, moves[:2] + moves[3:])]
    slips += [_ends(gold), _turned(gold), _front(gold), _back(gold)]
    wrong = other_texts(gold, slips)
    return None if wrong is None else Answer(gold, wrong, len(moves) + len(word) / 2)


LONG_RUN = Family(
    "long-run",
    "text",
    "Horizon: seven to eleven moves on a word, one after the other; computed.",
    (
        Form(
            "run",
            {"word": WORD, "moves": f"(?:{_MOVE})(?:, (?:{_MOVE})){{3,15}}"},
            train=(
                "Long run on {word}: {moves}.",
                "Begin a long run with {word}: {moves}.",
                "A long run: {word}, then {moves}.",
                "Take {word} on a long run: {moves}.",
            ),
            test=("The long run of {word} is {moves}.", "Long run: with {word} do {moves}."),
            draw=_draw_run,
            answer=_long_run,
            scale=(11.96, 1.42),
        ),
    ),
)
