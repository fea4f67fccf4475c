r"""The worker process that compares two expressions with sympy: one JSON line in, one JSON line out.

Symbolic algebra on a text that a model wrote may take forever, or all memory. So this runs in a process of its own,
which the kernel ends when it takes too long.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
from typing import Any, TextIO

import sympy  # type: ignore[import-untyped]
from latex2sympy2_extended import latex2sympy  # type: ignore[import-untyped]

_DIGITS = 60
_SAME = sympy.Float("1e-40")
"""How near two values of 60 digits have to be, relatively. Our choice."""
_POINTS = ("7/13", "-17/11", "29/17", "-5/19", "101/31", "-211/23")
"""Where expressions with letters are compared. Our choice: no one writes an expression that is equal at just these."""


def compare(gold: str, answer: str, digits: int = 0) -> dict[str, str]:
    """`{"outcome": right | wrong | unread-gold | unread-answer}`: expressions in LaTeX.

    With `digits` the answer is a decimal of so many digits, which may round the gold value.
    """
    one, other = _parse(gold), _parse(answer)
    if one is None or other is None:
        return {"outcome": "unread-answer" if one is not None else "unread-gold"}
    return {"outcome": "right" if _same(one, other, digits) else "wrong"}


def _parse(expression: str) -> Any:
    try:
        read = latex2sympy(expression)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (its parser raises bare exceptions)
        return None
    return read.subs(sympy.Symbol("i"), sympy.I).subs(sympy.Symbol("e"), sympy.E) if hasattr(read, "subs") else None


def _same(gold: Any, answer: Any, digits: int) -> bool:
    if bool(gold == answer):
        return True
    if isinstance(gold, sympy.Equality) or isinstance(answer, sympy.Equality):
        return _same_equation(gold, answer)
    if not isinstance(gold, sympy.Expr) or not isinstance(answer, sympy.Expr):
        return False
    tolerance = sympy.Float(5) / 10**digits if digits else _SAME
    letters = sorted(gold.free_symbols | answer.free_symbols, key=str)
    if not letters:
        return _near(gold, answer, tolerance)
    if gold.free_symbols != answer.free_symbols:
        return bool(sympy.simplify(gold - answer) == 0)
    return _same_everywhere(gold, answer, letters, tolerance)


def _same_everywhere(gold: Any, answer: Any, letters: list[Any], tolerance: Any) -> bool:
    compared = 0
    for start in range(len(_POINTS)):
        at = {letter: sympy.Rational(_POINTS[(start + 2 * n) % 6]) + n for n, letter in enumerate(letters)}
        one, other = gold.subs(at), answer.subs(at)
        if one.is_finite is False or other.is_finite is False:
            continue
        if not _near(one, other, tolerance):
            return False
        compared += 1
    return compared > 1


def _near(gold: Any, answer: Any, tolerance: Any) -> bool:
    one, other = sympy.N(gold, _DIGITS), sympy.N(answer, _DIGITS)
    if not (one.is_number and other.is_number) or sympy.nan in (one, other):
        return False
    if one.is_infinite or other.is_infinite:
        return bool(one == other)
    size = abs(one)
    if size == 0 or abs(other) == 0 or size < sympy.Float("1e-45"):
        return bool(sympy.simplify(gold - answer) == 0) if size < sympy.Float("1e-45") or other == 0 else False
    return bool(abs(one - other) <= tolerance * size)


def _same_equation(gold: Any, answer: Any) -> bool:
    """Whether one side less the other is the same but for a constant factor."""
    if not (isinstance(gold, sympy.Equality) and isinstance(answer, sympy.Equality)):
        return False
    ratio = sympy.simplify((gold.lhs - gold.rhs) / (answer.lhs - answer.rhs))
    return bool(ratio.is_number and ratio.is_nonzero)


def _answer(line: str) -> dict[str, str]:
    request = json.loads(line)
    signal.setitimer(signal.ITIMER_REAL, request["limit_s"])
    try:
        return compare(request["gold"], request["answer"], request["digits"])
    except MemoryError:  # the process ends, and another one begins with what it needs
        raise
    except Exception as error:  # noqa: BLE001  (any failure of the algebra means: unjudged)
        return {"outcome": "failed", "reason": f"{type(error).__name__}: {str(error)[:200]}"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main(requests: TextIO, replies: TextIO, memory_bytes: int) -> None:
    """Answer until there are no more requests."""
    import resource  # noqa: PLC0415  (there is none on Windows)

    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, even in the middle of C code
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    for warm in ("\\frac{1}{2}x^2", "\\sqrt{2}\\pi", "\\sin(x)+e^{x}"):
        compare(warm, warm + "+1")  # tables of the parser are built on first use
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    for line in requests:
        print(json.dumps(_answer(line)), file=replies, flush=True)


if __name__ == "__main__":
    replies_only, sys.stdout = sys.stdout, sys.stderr  # what the libraries print is not a reply
    main(sys.stdin, replies_only, int(sys.argv[1]))
