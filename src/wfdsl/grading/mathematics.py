"""Whether two mathematical answers are equal: by their normal forms, and expressions in a worker process.

Numbers are equal exactly; a decimal of six or more digits may round a number that is no finite decimal. Nothing is
compared with an absolute tolerance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from wfdsl.grading.math_processes import MathProcesses, shared_processes
from wfdsl.grading.normal_forms import Expression, Group, Number, Value, Words, clean, in_unit, read
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
_UNORDERED = frozenset({"set", "list"})


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
        if isinstance(gold, Group) and gold.form == "named":
            return await self._named(gold, answer)
        if isinstance(answer, Group) and answer.form == "named":
            answer = answer.items[1]
        if isinstance(answer, Group) and answer.form == "chain":
            return await self._chain(gold, answer.items)
        if isinstance(answer, Group) and answer.form == "list" and not isinstance(gold, Group):
            return all([await self.same(gold, item) for item in answer.items])  # one value, written twice
        if isinstance(gold, Group) or isinstance(answer, Group):
            return await self._groups(_unwrapped(gold), _unwrapped(answer))
        if isinstance(gold, Number) and isinstance(answer, Number):
            self.rule = "exact numbers"
            return same_number(gold, in_unit(answer, self.question) if not gold.unit else answer, self.question)
        if isinstance(gold, Words) or isinstance(answer, Words):
            self.rule = "words"
            return isinstance(gold, Words) and isinstance(answer, Words) and same_text(gold, answer)
        return await self._expressions(gold, answer)

    async def _named(self, gold: Group, answer: Value) -> bool:
        if isinstance(answer, Group) and answer.form == "named":
            return str(gold.items[0]) == str(answer.items[0]) and await self.same(gold.items[1], answer.items[1])
        if isinstance(answer, Expression) and "=" in answer:
            return await self._expressions(Expression(" = ".join(map(str, gold.items))), answer)
        return await self.same(gold.items[1], answer)

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
        if not isinstance(gold, Group) or not isinstance(answer, Group):
            return False
        if gold.form == answer.form and gold.form not in _UNORDERED | {"union"}:
            is_time = gold.form == ":"  # where one of them may leave out whether it is before noon
            return (is_time or len(gold.items) == len(answer.items)) and await self._in_order(gold, answer)
        if gold.form != answer.form and not {gold.form, answer.form} <= _UNORDERED:
            return False
        return await self._any_order(gold, answer)

    async def _in_order(self, gold: Group, answer: Group) -> bool:
        return all([await self.same(one, other) for one, other in zip(gold.items, answer.items, strict=False)])

    async def _any_order(self, gold: Group, answer: Group) -> bool:
        left = list(answer.items)
        if len(left) != len(gold.items) or len(left) > _MOST_ITEMS:
            return False
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
        digits = 0 if _EXACT.search(self.question) or not isinstance(answer, Number) else answer.digits or 0
        processes = self.processes or shared_processes()
        found = await processes.compare(_latex(gold), _latex(answer), digits if digits >= ROUNDED_DIGITS else 0)
        if found.outcome not in ("right", "wrong"):
            self.unjudged = found.reason or found.outcome
            self.gold_unread |= found.outcome in ("unread-gold", "failed")
        return found.outcome == "right"


def same_number(gold: Number, answer: Number, question: str = "") -> bool:
    """Whether two numbers are equal. A unit counts if both have one; percents are hundredths, or what was asked."""
    if gold.unit and answer.unit and gold.unit.casefold() != answer.unit.casefold():
        return False
    if gold.is_percent and answer.unit:
        return False
    wanted = {gold.value / 100 if gold.is_percent else gold.value}
    given = {answer.value / 100 if answer.is_percent else answer.value}
    if gold.is_percent and not answer.is_percent:
        wanted.add(gold.value)
    if answer.is_percent and not gold.is_percent and _PERCENT_ASKED.search(question):
        given = {answer.value}
    digits = 0 if _EXACT.search(question) else answer.digits or 0
    return any(_close(one, other, digits) for one in wanted for other in given)


def _close(gold: Fraction, answer: Fraction, digits: int) -> bool:
    is_rounding = digits >= ROUNDED_DIGITS and gold and 10**1_000 % gold.denominator  # a decimal that never ends
    return gold == answer or (bool(is_rounding) and abs(gold - answer) <= abs(gold) * Fraction(5, 10**digits))


def _unwrapped(value: Value) -> Value:
    """A list of one value is the value."""
    return value.items[0] if isinstance(value, Group) and value.form == "list" and len(value.items) == 1 else value


def _latex(value: Value) -> str:
    if isinstance(value, Number):
        return rf"\frac{{{value.value.numerator}}}{{{value.value.denominator}}}"
    return str(value)
