"""Counting questions: committees, ordered places, arrangements of letters, codes, and divisors."""

from __future__ import annotations

from collections import Counter
from math import comb, factorial, perm, prod

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream, other_numbers
from wfdsl_rl.gym.world.families.strings import WORDS

_SMALL = r"\d{1,2}"


def _draw_choice(rng: RandomStream) -> dict[str, str]:
    size = rng.between(5, 12)
    return {"n": str(size), "k": str(rng.between(2, min(5, size - 2)))}


def _committee(fields: Fields) -> Answer | None:
    size, chosen = int(fields["n"]), int(fields["k"])
    if chosen > size:
        return None
    gold = comb(size, chosen)
    wrong = other_numbers(gold, [perm(size, chosen), comb(size - 1, chosen), size * chosen, comb(size + 1, chosen)])
    return Answer(str(gold), wrong, size + 2 * chosen)


def _places(fields: Fields) -> Answer | None:
    size, chosen = int(fields["n"]), int(fields["k"])
    if chosen > size:
        return None
    gold = perm(size, chosen)
    wrong = other_numbers(gold, [comb(size, chosen), size**chosen, perm(size - 1, chosen), size * chosen])
    return Answer(str(gold), wrong, size + 2 * chosen)


def _draw_letters(rng: RandomStream) -> dict[str, str]:
    return {"word": rng.pick(WORDS)}


def _letters(fields: Fields) -> Answer:
    word = fields["word"]
    repeats = Counter(word).values()
    gold = factorial(len(word)) // prod(map(factorial, repeats))
    wrong = other_numbers(gold, [factorial(len(word)), factorial(len(set(word))), gold * 2, gold // 2, len(word) ** 2])
    return Answer(str(gold), wrong, len(word) + 2 * sum(count > 1 for count in repeats))


def _draw_codes(rng: RandomStream) -> dict[str, str]:
    return {"n": str(rng.between(3, 10)), "k": str(rng.between(2, 5))}


def _codes(fields: Fields) -> Answer | None:
    signs, length = int(fields["n"]), int(fields["k"])
    if not signs or not length:
        return None
    gold = signs**length
    wrong = other_numbers(gold, [perm(signs, length), length**signs, signs * length, signs ** (length - 1)])
    return Answer(str(gold), wrong, signs + 3 * length)


def _draw_divisors(rng: RandomStream) -> dict[str, str]:
    return {"n": str(prod(rng.pick((2, 2, 3, 3, 5, 7)) for _ in range(rng.between(2, 5))))}


def _divisors(fields: Fields) -> Answer | None:
    number = int(fields["n"])
    powers = _powers(number)
    if not number:
        return None
    gold = prod(power + 1 for power in powers)
    wrong = other_numbers(gold, [gold - 2, gold - 1, sum(powers), 2 ** len(powers), gold + 2])
    return Answer(str(gold), wrong, sum(powers) + 2 * len(powers))


def _powers(number: int) -> list[int]:
    """The exponents of the prime factors."""
    found = []
    factor = 2
    while factor * factor <= number:
        power = 0
        while number % factor == 0:
            number //= factor
            power += 1
        if power:
            found.append(power)
        factor += 1
    return [*found, 1] if number > 1 else found


FAMILY = Family(
    "counting",
    "math",
    "Committees, ordered places, arrangements of letters, codes and divisors; closed formulas.",
    (
        Form(
            "committee",
            {"n": _SMALL, "k": _SMALL},
            train=(
                "In how many ways can {k} people be chosen from {n} people?",
                "A class has {n} children. How many teams of {k} children are there?",
                "How many sets of {k} cards can be taken from {n} different cards?",
                "You have {n} books and may take {k}. How many different groups of books can you take?",
            ),
            test=(
                "How many committees of {k} can a club of {n} people form?",
                "Out of {n} colors, how many different groups of {k} colors are there?",
            ),
            draw=_draw_choice,
            answer=_committee,
            scale=(15.11, 3.50),
        ),
        Form(
            "places",
            {"n": _SMALL, "k": _SMALL},
            train=(
                "In how many orders can {k} of {n} people stand in a row?",
                "A race has {n} children. In how many ways can the first {k} places be taken?",
                "How many rows of {k} different cards can be made from {n} different cards?",
                "You have {n} books and put {k} of them in a row. How many rows are possible?",
            ),
            test=(
                "Of {n} people, {k} are called up one after the other. How many orders are possible?",
                "Out of {n} colors, how many rows of {k} different colors are there?",
            ),
            draw=_draw_choice,
            answer=_places,
            scale=(15.11, 3.50),
        ),
        Form(
            "letters",
            {"word": "[a-z]{2,10}"},
            train=(
                "In how many ways can the letters of {word} be arranged?",
                "How many different orders do the letters of the word {word} have?",
                "How many different rows of letters can be made with all letters of {word}?",
                "The letters of {word} are mixed. How many different results are there?",
            ),
            test=(
                "Count the different arrangements of the letters in {word}.",
                "Using every letter of the word {word} once, how many different rows can be made?",
            ),
            draw=_draw_letters,
            answer=_letters,
            scale=(7.20, 1.48),
        ),
        Form(
            "codes",
            {"n": _SMALL, "k": r"\d"},
            train=(
                "A code has {k} places with {n} possible signs each. How many codes are there?",
                "How many codes of {k} signs are there if each sign is one of {n}?",
                "A lock has {k} rings with {n} letters each. How many codes are possible?",
                "You fill {k} boxes with one of {n} colors each. In how many ways can you do it?",
            ),
            test=(
                "How many rows of {k} letters can be written with {n} letters if letters may repeat?",
                "Each of {k} people picks one of {n} colors. How many results are possible?",
            ),
            draw=_draw_codes,
            answer=_codes,
            scale=(16.97, 4.06),
        ),
        Form(
            "divisors",
            {"n": r"\d{1,6}"},
            train=(
                "How many divisors does {n} have?",
                "How many positive whole numbers divide {n}?",
                "Find the number of divisors of {n}.",
                "How many positive numbers is {n} a multiple of?",
            ),
            test=(
                "Count the positive divisors of {n}.",
                "By how many positive whole numbers can {n} be divided with nothing left?",
            ),
            draw=_draw_divisors,
            answer=_divisors,
            scale=(8.25, 2.34),
        ),
    ),
)
