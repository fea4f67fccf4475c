"""Algebra questions: linear equations with one unknown on one or both sides, and systems of two."""

from __future__ import annotations

from fractions import Fraction

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream, other_numbers

_WHOLE = r"-?\d{1,6}"
_COUNT = r"\d{1,6}"
_SIGN = r"[-+]"


def _signed(fields: Fields, sign: str, name: str) -> int:
    return int(fields[sign] + fields[name])


def _answer(gold: Fraction, slips: list[Fraction | int], fields: Fields) -> Answer:
    digits = sum(len(text.lstrip("-")) for name, text in fields.items() if name not in "st")
    return Answer(str(gold), other_numbers(gold, slips), digits + 3 * (gold.denominator > 1) + 2 * (gold < 0))


def _draw_linear(rng: RandomStream) -> dict[str, str]:
    factor, sign, term = rng.between(2, 15), rng.pick("+-"), rng.between(1, rng.pick((9, 40)))
    whole = factor * rng.between(-9, 25) + int(f"{sign}{term}")
    result = whole if rng.below(4) else rng.between(-20, 99)
    return {"a": str(factor), "s": sign, "b": str(term), "c": str(result)}


def _linear(fields: Fields) -> Answer | None:
    factor, term, result = int(fields["a"]), _signed(fields, "s", "b"), int(fields["c"])
    if not factor:
        return None
    gold = Fraction(result - term, factor)
    slips: list[Fraction | int] = [Fraction(result + term, factor), -gold, result - term - factor, result - term]
    return _answer(gold, slips, fields)


def _draw_sides(rng: RandomStream) -> dict[str, str]:
    left, right = rng.sample(range(2, 15), 2)
    root, sign, term = rng.between(-6, 15), rng.pick("+-"), rng.between(1, 30)
    rest = (left - right) * root + int(f"{sign}{term}")
    return {
        "a": str(left),
        "s": sign,
        "b": str(term),
        "c": str(right),
        "t": "-" if rest < 0 else "+",
        "d": str(abs(rest)),
    }


def _sides(fields: Fields) -> Answer | None:
    left, right = int(fields["a"]), int(fields["c"])
    term, rest = _signed(fields, "s", "b"), _signed(fields, "t", "d")
    if left == right:
        return None
    gold = Fraction(rest - term, left - right)
    slips = [Fraction(rest - term, (left + right) or 1), Fraction(rest + term, left - right), -gold]
    return _answer(gold, [*slips], fields)


def _draw_system(rng: RandomStream) -> dict[str, str]:
    a, b, d, e = (rng.between(2, 9) for _ in range(4))
    sign = rng.pick("+-")
    x, y = rng.between(-5, 12), rng.between(-5, 12)
    second = d * x + int(f"{sign}{e}") * y
    return {"a": str(a), "b": str(b), "c": str(a * x + b * y), "d": str(d), "s": sign, "e": str(e), "f": str(second)}


def _system(fields: Fields) -> Answer | None:
    a, b, c, d, f = (int(fields[name]) for name in "abcdf")
    e = _signed(fields, "s", "e")
    determinant = a * e - b * d
    if not determinant:
        return None
    gold, other = Fraction(c * e - b * f, determinant), Fraction(a * f - c * d, determinant)
    slips: list[Fraction | int] = [other, -gold, Fraction(c * e + b * f, determinant)]
    return _answer(gold, slips, fields)


FAMILY = Family(
    "algebra",
    "math",
    "Linear equations on one or both sides, and systems of two; solved with exact fractions.",
    (
        Form(
            "linear",
            {"a": _COUNT, "s": _SIGN, "b": _COUNT, "c": _WHOLE},
            train=(
                "Find x if {a}x {s} {b} = {c}.",
                "If {a}x {s} {b} = {c}, what is x?",
                "Let {a}x {s} {b} = {c}. Give x.",
                "For which x is {a}x {s} {b} equal to {c}?",
            ),
            test=("What x makes {a}x {s} {b} = {c} true?", "Which number x gives {a}x {s} {b} = {c}?"),
            draw=_draw_linear,
            answer=_linear,
            scale=(6.09, 1.58),
        ),
        Form(
            "sides",
            {"a": _COUNT, "s": _SIGN, "b": _COUNT, "c": _COUNT, "t": _SIGN, "d": _COUNT},
            train=(
                "Find x if {a}x {s} {b} = {c}x {t} {d}.",
                "If {a}x {s} {b} = {c}x {t} {d}, what is x?",
                "Let {a}x {s} {b} = {c}x {t} {d}. Give x.",
                "For which x are {a}x {s} {b} and {c}x {t} {d} equal?",
            ),
            test=(
                "What x makes {a}x {s} {b} = {c}x {t} {d} true?",
                "Which number x gives {a}x {s} {b} = {c}x {t} {d}?",
            ),
            draw=_draw_sides,
            answer=_sides,
            scale=(6.90, 1.27),
        ),
        Form(
            "system",
            {"a": _COUNT, "b": _COUNT, "c": _WHOLE, "d": _COUNT, "s": _SIGN, "e": _COUNT, "f": _WHOLE},
            train=(
                "Find x if {a}x + {b}y = {c} and {d}x {s} {e}y = {f}.",
                "If {a}x + {b}y = {c} and {d}x {s} {e}y = {f}, what is x?",
                "Let {a}x + {b}y = {c} and {d}x {s} {e}y = {f}. Give x.",
                "Two numbers x and y have {a}x + {b}y = {c} and {d}x {s} {e}y = {f}. Find x.",
            ),
            test=(
                "What x makes {a}x + {b}y = {c} and {d}x {s} {e}y = {f} true?",
                "Given {a}x + {b}y = {c} and {d}x {s} {e}y = {f}, what is the value of x?",
            ),
            draw=_draw_system,
            answer=_system,
            scale=(8.43, 1.03),
        ),
    ),
)
