"""Families of `gym/axes` whose questions have several numbered parts, each with a result of its own.

In a chain, each part starts from the result of the one before it; otherwise, parts do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import comb
from string import ascii_lowercase
from typing import Final

from wfdsl_rl.gym.world.families import choice_options
from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream, other_numbers, other_texts
from wfdsl_rl.gym.world.families.one_part import MOVES, moved
from wfdsl_rl.gym.world.families.strings import WORD, WORDS

_WRONG: Final = 3
_STEP: Final = r"(?:plus|minus|times) \d{1,3}"
_SIGNS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "plus": lambda one, other: one + other,
    "minus": lambda one, other: one - other,
    "times": lambda one, other: one * other,
}


def _number_part(gold: int, candidates: Sequence[int]) -> tuple[str, ...]:
    return (str(gold), *other_numbers(gold, candidates)[:_WRONG])


def _draw_step(rng: RandomStream) -> str:
    sign = rng.pick(("plus", "minus", "times"))
    return f"{sign} {rng.between(3, 9) if sign == 'times' else rng.between(11, 89)}"


def _draw_chain(rng: RandomStream) -> dict[str, str]:
    parts = {name: f"{_draw_step(rng)}, {_draw_step(rng)}" for name in "xyz"}
    return {"a": str(rng.between(12, 99)), **parts}


def _after(number: int, steps: str) -> int:
    for step in steps.split(", "):
        sign, other = step.split(" ")
        number = _SIGNS[sign](number, int(other))
    return number


def _chain(fields: Fields) -> Answer | None:
    number, parts = int(fields["a"]), []
    for name in "xyz":
        first, second = fields[name].split(", ")
        after = _after(number, fields[name])
        parts.append(_number_part(after, [_after(number, first), _after(number, second), after + 10]))
        number = after
    gold = int(parts[-1][0])
    if abs(gold) > 10**6:
        return None
    wrong = other_numbers(gold, [_after(int(fields["a"]), f"{fields['x']}, {fields['z']}"), int(parts[1][0])])
    load = sum(map(len, fields.values())) / 4 + sum(fields[name].count("times") for name in "xyz")
    return Answer(str(gold), wrong, load, parts=tuple(parts))


CHAIN = Family(
    "chain",
    "math",
    "Depth: three parts, each from the result of the one before; exact.",
    (
        Form(
            "chain",
            {"a": r"\d{1,4}", **dict.fromkeys("xyz", f"{_STEP}, {_STEP}")},
            train=(
                "Chain from {a}. Part 1: {x}. Part 2: {y}. Part 3: {z}.",
                "A chain starts with {a}. Part 1: {x}. Part 2: {y}. Part 3: {z}. How does it end?",
                "Start a chain at {a}. Part 1: {x}. Part 2: {y}. Part 3: {z}. What is last?",
                "Number {a} goes into a chain. Part 1: {x}. Part 2: {y}. Part 3: {z}.",
            ),
            test=(
                "The chain of {a}: Part 1: {x}. Part 2: {y}. Part 3: {z}. What comes out?",
                "With {a}, follow the chain. Part 1: {x}. Part 2: {y}. Part 3: {z}.",
            ),
            draw=_draw_chain,
            answer=_chain,
            scale=(14.96, 1.03),
        ),
    ),
)


def _draw_basket(rng: RandomStream) -> dict[str, str]:
    return {
        "p": str(rng.pick((5, 10, 15, 20, 25, 30, 40, 60))),
        "n": str(20 * rng.between(3, 60)),
        "a": str(rng.between(12, 98)),
        "b": str(rng.between(12, 98)),
        "k": str(rng.between(5, 30)),
        "m": str(rng.between(8, 60)),
    }


def _basket(fields: Fields) -> Answer | None:
    share, whole, one, other, people, last = (int(fields[name]) for name in "pnabkm")
    if share * whole % 100:
        return None
    percent, product, pairs, total = share * whole // 100, one * other, comb(people, 2), last * (last + 1) // 2
    parts = (
        _number_part(percent, [whole - percent, percent * 10, whole // share if share else 1]),
        _number_part(product, [product + 10, product - one, product + other]),
        _number_part(pairs, [people * people, people * (people - 1), people * 2]),
        _number_part(total, [last * last // 2, total - last, last * last]),
    )
    gold = percent + product + pairs + total
    wrong = other_numbers(gold, [gold + 10, gold + pairs, gold - total, product + total])
    return Answer(str(gold), wrong, sum(map(len, fields.values())) + share % 10 / 3, parts=parts)


_BASKET: Final = "Part 1: {p}% of {n}. Part 2: {a} times {b}. Part 3: pairs of {k} people. Part 4: 1 to {m} summed up."

BASKET = Family(
    "basket",
    "math",
    "Breadth: four different small tasks, whose results are added; exact.",
    (
        Form(
            "basket",
            dict.fromkeys("pnabkm", r"\d{1,4}"),
            train=(
                f"Basket of four. {_BASKET} Add the results.",
                f"Fill the basket. {_BASKET} What is in it?",
                f"Add up the basket. {_BASKET}",
                f"A basket has four parts. {_BASKET} Give the total.",
            ),
            test=(f"What is the total of this basket? {_BASKET}", f"Basket: {_BASKET} Sum?"),
            draw=_draw_basket,
            answer=_basket,
            scale=(13.43, 0.93),
        ),
    ),
)


def _draw_pair(rng: RandomStream) -> dict[str, str]:
    a, b, c, d = (rng.between(12, 79) for _ in range(4))
    gold = abs(a * b - c * d)
    wrong = other_numbers(gold, [abs(a * c - b * d), gold + 10, abs(a * d - b * c)])[:_WRONG]
    fields = {"a": str(a), "b": str(b), "c": str(c), "d": str(d)}
    return {**fields, "options": choice_options.written(rng, str(gold), wrong)}


def _pair(fields: Fields) -> Answer | None:
    a, b, c, d = (int(fields[name]) for name in "abcd")
    gold = str(abs(a * b - c * d))
    found = choice_options.chosen(fields["options"], lambda option: option == gold, load=(a + b + c + d) / 20)
    if found is None:
        return None
    parts = tuple(_number_part(x * y, [x * y + 10, x * (y + 1), y * (x - 1)]) for x, y in ((a, b), (c, d)))
    return Answer(found.gold, found.wrong, found.load, choices=found.choices, parts=parts)


_PAIR: Final = "Part 1: {a} times {b}. Part 2: {c} times {d}."

PAIR = Family(
    "pair",
    "choice",
    "Parallel parts: two products, and by how much they differ; exact.",
    (
        Form(
            "pair",
            {**dict.fromkeys("abcd", r"\d{1,4}"), "options": choice_options.PATTERN},
            train=(
                f"Pair of products. {_PAIR} By how much do they differ?{{options}}",
                f"A pair. {_PAIR} How far apart?{{options}}",
                f"Take this pair. {_PAIR} The difference?{{options}}",
                f"How far apart is the pair? {_PAIR}{{options}}",
            ),
            test=(
                f"What is between the pair? {_PAIR}{{options}}",
                f"Here is a pair. {_PAIR} The difference is?{{options}}",
            ),
            draw=_draw_pair,
            answer=_pair,
            scale=(9.1, 1.96),
        ),
    ),
)


def _shifted(word: str, places: int) -> str:
    return "".join(ascii_lowercase[(ascii_lowercase.index(letter) + places) % 26] for letter in word)


def _draw_relay(rng: RandomStream) -> dict[str, str]:
    moves = [rng.pick(tuple(MOVES)) for _ in range(4)]
    return {
        "word": rng.pick(WORDS),
        "x": f"{moves[0]}, {moves[1]}",
        "k": str(rng.between(2, 9)),
        "z": f"{moves[2]}, {moves[3]}",
    }


def _relay(fields: Fields) -> Answer | None:
    word, places = fields["word"], int(fields["k"])
    first_moves, last_moves = fields["x"].split(", "), fields["z"].split(", ")
    first = moved(word, first_moves)
    second = _shifted(first, places)
    gold = moved(second, last_moves)
    slips = (
        (first, (moved(word, first_moves[:1]), moved(word, first_moves[1:]), word, first[::-1], first[1:] + first[0])),
        (second, (_shifted(first, places + 1), _shifted(first, -places), first, second[::-1])),
        (gold, (moved(second, last_moves[:1]), _shifted(gold, 1), second, gold[::-1], gold[1:] + gold[0])),
    )
    parts = []
    for truth, candidates in slips:
        wrong = other_texts(truth, candidates)
        if wrong is None:
            return None
        parts.append((truth, *wrong[:_WRONG]))
    return Answer(gold, parts[-1][1:], len(word) + places / 2, parts=tuple(parts))


_RELAY: Final = "Part 1: {x}. Part 2: each letter {k} on. Part 3: {z}."
_TWO_MOVES: Final = f"(?:{'|'.join(MOVES)}), (?:{'|'.join(MOVES)})"

RELAY = Family(
    "relay",
    "text",
    "Depth: three parts on a word, each from the result of the one before; computed.",
    (
        Form(
            "relay",
            {"word": WORD, "x": _TWO_MOVES, "k": r"\d", "z": _TWO_MOVES},
            train=(
                f"Relay with {{word}}. {_RELAY}",
                f"Send {{word}} through the relay. {_RELAY}",
                f"The word {{word}} starts a relay. {_RELAY} What arrives?",
                f"Start the relay: {{word}}. {_RELAY} How does it end?",
            ),
            test=(f"Relay: {{word}}. {_RELAY} What comes last?", f"In this relay the word is {{word}}. {_RELAY}"),
            draw=_draw_relay,
            answer=_relay,
            scale=(8.66, 1.20),
        ),
    ),
)
