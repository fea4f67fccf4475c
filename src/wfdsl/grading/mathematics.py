"""Whether two mathematical answers are equal: by their normal forms, and expressions in a worker process.

Numbers are equal exactly; a decimal of six or more digits may round a number that is no finite decimal. Nothing is
compared with an absolute tolerance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from wfdsl.grading.math_processes import MathProcesses, shared_processes
from wfdsl.grading.normal_forms import Group, Number, Value, Words, clean, in_unit, read
from wfdsl.grading.text import same_text
from wfdsl.grading.verdict import Verdict
from wfdsl.installation import require_packages

ROUNDED_DIGITS = 6
"""From how many digits on a decimal may stand for a number that never ends. Our choice."""
_MOST_ITEMS = 40  # of a set: each pair may be a comparison of expressions
_PERCENT_ASKED = re.compile(
    r"(?:what|which|many|as\s+an?|in)\s+(?:\w+\s+){0,3}(?:%|per\s?cent)|percentage|百分[之比率]|何\s*(?:%|パーセント|割)",
    re.IGNORECASE,
)
_EXACT = re.compile(r"\bexact(?:ly)?\b|精确|正確な値", re.IGNORECASE)
_UNREADABLE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}|\\approx|\\neg|\d_|\\(?:text|mathrm)\b|[~?]|\.\.\.|\\[lc]?dots")
_UNORDERED = frozenset({"set", "union"})


async def grade_math(gold: str, answer: str, *, question: str = "", processes: MathProcesses | None = None) -> Verdict:
    """Whether an expression equals the gold one."""
    wanted, given = read(gold), read(answer)
    if re.sub(r"\s", "", clean(gold)) == re.sub(r"\s", "", clean(answer)):
        return Verdict("right", answer, f"{given} is the gold answer", rule="the same spelling")
    check = _Check(question, processes)
    is_same = await check.same(wanted, given)
    if check.unjudged and not is_same and check.gold_unread:
        return Verdict("unjudged", answer, check.unjudged, rule=check.rule)
    sign = "equals" if is_same else "does not equal"
    reason = f"{given} {sign} {wanted} ({check.rule})" + (f": {check.unjudged}" if check.unjudged else "")
    return Verdict("right" if is_same else "wrong", answer, reason, rule=check.rule)


@dataclass(slots=True)
class _Check:
    question: str
    processes: MathProcesses | None
    rule: str = "forms"
    unjudged: str = ""
    """Why a comparison of expressions came to no end."""
    gold_unread: bool = False

    async def same(self, gold: Value, answer: Value) -> bool:
        """Whether two normal forms are equal."""
        (name, gold), (other, answer) = _named(gold), _named(answer)
        if name and isinstance(answer, str) and "=" in answer:
            return await self._expressions(f"{name} = {gold}", answer)
        if name and other and name != other:
            return False
        if isinstance(answer, Group) and answer.form == "chain":
            return await self._chain(gold, answer.items)
        if isinstance(answer, Group) and answer.form == "set" and answer.items and not isinstance(gold, Group):
            return all([await self.same(gold, item) for item in answer.items])  # one value, written twice
        if isinstance(gold, Group) or isinstance(answer, Group):
            return await self._groups(gold, answer)
        if isinstance(gold, Number) and isinstance(answer, Number):
            self.rule = "exact numbers"
            return _same_number(gold, in_unit(answer, self.question) if not gold.unit else answer, self.question)
        if isinstance(gold, Words) or isinstance(answer, Words):
            self.rule = "words"
            return isinstance(gold, Words) and isinstance(answer, Words) and same_text(gold, answer)
        return await self._expressions(gold, answer)

    async def _chain(self, gold: Value, sides: tuple[Value, ...]) -> bool:
        """Whether the last side of `3 + 4 = 7` is the gold one, and no side is known to be another value."""
        if not await self.same(gold, sides[-1]):
            return False
        for side in sides[:-1]:
            self.unjudged = ""
            if not await self.same(sides[-1], side) and not self.unjudged:
                return False
        return True

    async def _groups(self, gold: Value, answer: Value) -> bool:
        self.rule = "item by item"
        if not isinstance(gold, Group) or not isinstance(answer, Group) or gold.form != answer.form:
            return False
        left, is_time = list(answer.items), gold.form == ":"  # which may leave out whether it is before noon
        if not is_time and (len(left) != len(gold.items) or len(left) > _MOST_ITEMS):
            return False
        if gold.form not in _UNORDERED:
            return all([await self.same(*pair) for pair in zip(gold.items, left, strict=False)])
        for item in gold.items:
            for other in sorted(left, key=lambda other: str(other) != str(item)):
                if str(other) == str(item) or await self.same(item, other):
                    left.remove(other)
                    break
            else:
                return False
        return True

    async def _expressions(self, gold: Value, answer: Value) -> bool:
        self.rule = "algebra"
        if not str(answer).strip() or _UNREADABLE.search(str(answer)):
            self.unjudged = "the answer is not an expression"
            return False
        if str(gold) != str(answer) and str(gold).lower() == str(answer).lower():
            return False  # a capital letter is another variable
        require_packages("grading mathematics", ["math_verify"], "eval")
        processes = self.processes or shared_processes()
        found = await processes.compare(_latex(gold), _latex(answer), _rounded_digits(answer, self.question))
        if found.outcome not in ("right", "wrong"):
            self.unjudged = found.reason or found.outcome
            self.gold_unread |= found.outcome in ("unread-gold", "failed")
        return found.outcome == "right"


def _named(value: Value) -> tuple[str, Value]:
    """The name that an answer such as `x = 5` gives its value, and the value."""
    return (str(value.items[0]), value.items[1]) if isinstance(value, Group) and value.form == "named" else ("", value)


def _same_number(gold: Number, answer: Number, question: str) -> bool:
    """Whether two numbers are equal. A unit counts if both have one; percents are hundredths, or what was asked."""
    if answer.unit and (gold.is_percent or gold.unit.casefold() not in ("", answer.unit.casefold())):
        return False
    is_asked = answer.is_percent and not gold.is_percent and _PERCENT_ASKED.search(question)
    given = answer.value if is_asked else answer.exact
    wanted = {gold.exact} if answer.is_percent else {gold.exact, gold.value}
    digits = _rounded_digits(answer, question)
    return given in wanted or any(_rounds(given, one, digits) for one in wanted)


def _rounded_digits(answer: Value, question: str) -> int:
    """The digits of a decimal that may stand for a number that never ends; 0 for what may not."""
    digits = answer.digits if isinstance(answer, Number) and not _EXACT.search(question) else 0
    return digits if digits >= ROUNDED_DIGITS else 0


def _rounds(answer: Fraction, gold: Fraction, digits: int) -> bool:
    is_endless = digits and gold and 10**1_000 % gold.denominator
    return bool(is_endless) and abs(gold - answer) <= abs(gold) * Fraction(5, 10**digits)


def _latex(value: Value) -> str:
    """Mathematics for the worker: decimals as fractions, so that nothing is rounded."""
    if isinstance(value, Number):
        return rf"\frac{{{value.value.numerator}}}{{{value.value.denominator}}}"
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", str(value))
    return re.sub(r"(?<![\d.])(\d*)\.(\d+)", lambda m: rf"\frac{{{int(m[1] + m[2])}}}{{{10 ** len(m[2])}}}", text)
