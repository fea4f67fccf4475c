"""Number questions with four options: primes, multiples, remainders, the largest or smallest fraction."""

from __future__ import annotations

import re
from fractions import Fraction

from wfdsl_rl.gym.world.families import choice_options
from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream

_LIMIT = 199
_PRIMES = tuple(n for n in range(2, _LIMIT + 1) if all(n % d for d in range(2, int(n**0.5) + 1)))
_TEMPTING = tuple(n for n in range(9, _LIMIT + 1) if n % 2 and n % 5 and n not in _PRIMES)
"""Odd composite numbers that do not end in 5."""
_NUMBER = re.compile(r"\d{1,6}")


def _read(fields: Fields) -> dict[str, int] | None:
    """The options as whole numbers; None unless all are."""
    found = choice_options.read(fields["options"]) or ("",)
    return {one: int(one) for one in found} if all(map(_NUMBER.fullmatch, found)) else None


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _draw_prime(rng: RandomStream) -> dict[str, str]:
    others = map(str, rng.sample(_TEMPTING, 3))
    return {"options": choice_options.written(rng, str(rng.pick(_PRIMES[4:])), [*others])}


def _prime(fields: Fields) -> Answer | None:
    found = _read(fields)
    if found is None:
        return None
    return choice_options.chosen(
        fields["options"],
        lambda option: _is_prime(found[option]),
        load=sum(found.values()) / 4,
        distance=lambda option: -_smallest_divisor(found[option]),
    )


def _smallest_divisor(number: int) -> int:
    """Numbers whose smallest divisor is large look prime."""
    return next((divisor for divisor in range(2, int(number**0.5) + 1) if number % divisor == 0), 1)


def _draw_remainder(rng: RandomStream) -> dict[str, str]:
    divisor = rng.between(3, 14)
    rest = rng.between(0, divisor - 1)
    truth = divisor * rng.between(3, 30) + rest
    shifts = rng.sample([shift for shift in range(-9, 10) if shift % divisor], 2)
    far = divisor * rng.between(3, 30) + (rest + 1) % divisor
    others = [*(truth + shift for shift in shifts), far]
    return {"k": str(divisor), "r": str(rest), "options": choice_options.written(rng, str(truth), [*map(str, others)])}


def _remainder(fields: Fields) -> Answer | None:
    divisor, rest, found = int(fields["k"]), int(fields.get("r", "0")), _read(fields)
    if found is None or rest >= divisor:
        return None
    return choice_options.chosen(
        fields["options"],
        lambda option: found[option] % divisor == rest,
        load=divisor + sum(found.values()) / 40,
        distance=lambda option: min((found[option] - rest) % divisor, (rest - found[option]) % divisor),
    )


def _draw_multiple(rng: RandomStream) -> dict[str, str]:
    fields = _draw_remainder(rng)
    found = choice_options.read(fields["options"]) or ()
    shifted = [str(int(one) - int(fields["r"])) for one in found]
    return {"k": fields["k"], "options": choice_options.written(rng, shifted[0], shifted[1:]) if shifted else ""}


_FRACTION = re.compile(r"(\d{1,4})/([1-9]\d{0,3})")


def _draw_fraction(rng: RandomStream) -> dict[str, str]:
    bottoms = [rng.between(3, 16) for _ in range(4)]
    share = rng.between(20, 80)
    tops = [max(1, (bottom * share + 50) // 100 + rng.between(-1, 1)) for bottom in bottoms]
    texts = [f"{top}/{bottom}" for top, bottom in zip(tops, bottoms, strict=True)]
    return {"which": rng.pick(("largest", "smallest")), "options": choice_options.written(rng, texts[0], texts[1:])}


def _fraction(fields: Fields) -> Answer | None:
    found = choice_options.read(fields["options"]) or ("",)
    parts = {one: _FRACTION.fullmatch(one) for one in found}
    values = {one: Fraction(int(part[1]), int(part[2])) for one, part in parts.items() if part}
    if len(values) != len(choice_options.LETTERS):
        return None
    first, second = sorted(values.values(), reverse=fields["which"] == "largest")[:2]
    if first == second:
        return None
    return choice_options.chosen(
        fields["options"],
        lambda option: values[option] == first,
        load=-float(abs(first - second)),
        distance=lambda option: float(abs(values[option] - first)),
    )


_NUMBERS = {"options": choice_options.PATTERN}

FAMILY = Family(
    "numbers",
    "choice",
    "Which of four is prime, a multiple, leaves a remainder, or is the largest or smallest fraction; computed.",
    (
        Form(
            "prime",
            _NUMBERS,
            train=(
                "Which of these numbers is prime?{options}",
                "Which number has no divisor but 1 and itself?{options}",
                "One of these is a prime number. Which one?{options}",
                "The only prime number here is{options}",
            ),
            test=(
                "Name the prime among these numbers.{options}",
                "Three of these are not prime. Which one is?{options}",
            ),
            draw=_draw_prime,
            answer=_prime,
            scale=(106.39, 26.49),
        ),
        Form(
            "multiple",
            {"k": r"[1-9]\d?", **_NUMBERS},
            train=(
                "Which of these numbers is a multiple of {k}?{options}",
                "Which number can be divided by {k} with nothing left?{options}",
                "One of these is divisible by {k}. Which one?{options}",
                "The only multiple of {k} here is{options}",
            ),
            test=("Name the number that {k} divides.{options}", "Of which of these is {k} a divisor?{options}"),
            draw=_draw_multiple,
            answer=_remainder,
            scale=(22.45, 10.72),
        ),
        Form(
            "remainder",
            {"k": r"[1-9]\d?", "r": r"\d{1,2}", **_NUMBERS},
            train=(
                "Which number has remainder {r} when divided by {k}?{options}",
                "Which of these numbers is {r} more than a multiple of {k}?{options}",
                "Divided by {k}, one of these leaves {r}. Which one?{options}",
                "The only number here that leaves {r} on division by {k} is{options}",
            ),
            test=(
                "Name the number that leaves {r} if divided by {k}.{options}",
                "Modulo {k}, which one is {r}?{options}",
            ),
            draw=_draw_remainder,
            answer=_remainder,
            scale=(22.82, 10.87),
        ),
        Form(
            "fraction",
            {"which": "largest|smallest", **_NUMBERS},
            train=(
                "Which of these fractions is the {which}?{options}",
                "Which fraction has the {which} value?{options}",
                "One fraction is the {which}. Which one?{options}",
                "The {which} fraction here is{options}",
            ),
            test=(
                "Name the {which} of these fractions.{options}",
                "Among these fractions, which one is {which}?{options}",
            ),
            draw=_draw_fraction,
            answer=_fraction,
            scale=(-0.10, 0.08),
        ),
    ),
)
