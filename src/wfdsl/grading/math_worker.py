r"""The worker process that compares two expressions with sympy: one JSON line in, one JSON line out.

Symbolic algebra on a text that a model wrote may take forever, or all memory. So this runs in a process of its own,
which the kernel ends when it takes too long.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from typing import Any

import sympy  # type: ignore[import-untyped]
from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy  # type: ignore[import-untyped]

_DIGITS = 60
_NO_MEMORY = (MemoryError, SystemError)
"""What Python raises where there is no memory left: the second one where C code could not even make the first."""
_SAME = sympy.Float("1e-40")
"""How near two values of 60 digits have to be, relatively. Our choice."""


def compare(gold: str, answer: str) -> str:
    """How two expressions in LaTeX compare: `right` or `wrong`, or that the gold one cannot be read."""
    one, other = _parse(gold), _parse(answer)
    if one is None:
        return "the gold answer is not an expression"
    return "right" if other is not None and _same(one, other) else "wrong"


def _parse(expression: str) -> Any:
    try:
        read = latex2sympy(expression, conversion_config=ConversionConfig(lowercase_symbols=False))
        read = read.subs(sympy.Symbol("i"), sympy.I).subs(sympy.Symbol("e"), sympy.E)
        return read.replace(sympy.UnevaluatedExpr, lambda hundredth: hundredth)  # of a percent sign
    except _NO_MEMORY:
        raise
    except Exception:  # noqa: BLE001  (its parser raises bare exceptions, and returns what is no expression)
        return None


def _same(gold: Any, answer: Any) -> bool:
    if bool(gold == answer):
        return True
    if isinstance(gold, sympy.Equality) and isinstance(answer, sympy.Equality):
        ratio = sympy.simplify((gold.lhs - gold.rhs) / (answer.lhs - answer.rhs))  # equal but for a constant factor
        return bool(ratio.is_number and ratio.is_nonzero)
    if not isinstance(gold, sympy.Expr) or not isinstance(answer, sympy.Expr):
        return False
    letters = sorted(gold.free_symbols | answer.free_symbols, key=str)
    points = (  # our choice: no one writes expressions that are equal at just these
        {letter: (-1) ** start * sympy.Rational(sympy.prime(3 + start + 6 * n), 30) for n, letter in enumerate(letters)}
        for start in range(6 if letters else 1)
    )
    return all(_near(gold.subs(point), answer.subs(point)) for point in points)


def _near(gold: Any, answer: Any) -> bool:
    one, other = sympy.N(gold, _DIGITS), sympy.N(answer, _DIGITS)
    if not all(number.is_number and number.is_finite for number in (one, other)):
        return False
    if other == 0 or abs(one) < sympy.Float("1e-45"):
        return bool(sympy.simplify(gold - answer) == 0)
    return bool(abs(one - other) <= _SAME * abs(one))


def main(limit_s: float, memory_bytes: int) -> None:
    """Answer until there are no more requests."""
    replies, sys.stdout = sys.stdout, sys.stderr  # what the libraries print is not a reply
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, even in the middle of C code
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    for warm in ("\\frac{1}{2}x^2", "\\sqrt{2}\\pi", "\\sin(x)+e^{x}"):
        compare(warm, warm + "+1")  # tables of the parser are built on first use
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    for request in map(json.loads, sys.stdin):
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            reply = compare(*request)
        except _NO_MEMORY:  # the process ends, and another one begins with what it needs
            raise
        except Exception as error:  # noqa: BLE001  (any failure of the algebra means: unjudged)
            reply = f"{type(error).__name__}: {str(error)[:200]}"
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
