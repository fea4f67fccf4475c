"""Whether two mathematical answers are equal: by their normal forms, and expressions in a worker process.

Numbers are equal exactly: a decimal is the number that it writes, and nothing is compared with an absolute tolerance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wfdsl.grading.math_processes import MathProcesses, shared_processes
from wfdsl.grading.normal_forms import Group, Number, Value, Words, clean, in_unit, read
from wfdsl.grading.text import same_text
from wfdsl.grading.verdict import Outcome, Verdict
from wfdsl.installation import require_packages

_MOST_ITEMS = 40  # of a set: each pair may be a comparison of expressions
_PERCENT_ASKED = re.compile(
    r"(?:what|which|many|as\s+an?|in)\s+(?:\w+\s+){0,3}(?:%|per\s?cent)|percentage|百分[之比率]|何\s*(?:%|パーセント|割)",
    re.IGNORECASE,
)
_UNREADABLE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}|\\approx|\\neg|\d_|\\(?:text|mathrm)\b|[~?]|\.\.\.|\\[lc]?dots")


async def grade_math(gold: str, answer: str, *, question: str = "", processes: MathProcesses | None = None) -> Verdict:
    """Whether an expression equals the gold one."""
    wanted, given = read(gold), read(answer)
    if re.sub(r"\s", "", clean(gold)) == re.sub(r"\s", "", clean(answer)):
        return Verdict("right", answer, f"{given} is the gold answer", rule="the same spelling")
    if isinstance(wanted, Number) and isinstance(given, str):
        given = read(re.sub(r"(?<=\d)(?=[a-zA-Z]\W*$)", " ", answer))  # `24g`
    check = _Check(question, processes)
    is_same = await check.same(wanted, given)
    outcome: Outcome = "right" if is_same else "unjudged" if check.unjudged else "wrong"
    said = f"{given} {'equals' if is_same else 'does not equal'} {wanted} ({check.rule})"
    return Verdict(outcome, answer, check.unjudged if outcome == "unjudged" else said, rule=check.rule)


@dataclass(slots=True)
class _Check:
    question: str
    processes: MathProcesses | None
    rule: str = "forms"
    unjudged: str = ""
    """Why a comparison of expressions came to no end."""

    async def same(self, gold: Value, answer: Value) -> bool:
        """Whether two normal forms are equal."""
        (name, gold), (other, answer) = _named(gold), _named(answer)
        if isinstance(gold, str) and isinstance(answer, str) and "=" in answer:
            return await self._expressions(f"{name} = {gold}" if name else gold, answer)
        if name and other and name != other:
            return False
        if isinstance(gold, Group) or isinstance(answer, Group):
            return await self._groups(gold, answer)
        if isinstance(gold, Number) and isinstance(answer, Number):
            self.rule = "exact numbers"
            return _same_number(gold, in_unit(answer, gold.unit or self.question), self.question)
        if isinstance(gold, Words) or isinstance(answer, Words):
            self.rule = "words"
            return isinstance(gold, Words) and isinstance(answer, Words) and same_text(gold, answer)
        return await self._expressions(gold, answer)

    async def _groups(self, gold: Value, answer: Value) -> bool:
        self.rule = "item by item"
        if not isinstance(gold, Group) or not isinstance(answer, Group):
            return False
        if "()" in (gold.form, answer.form):
            gold, answer = _point(gold), _point(answer)
        if gold.form != answer.form:
            return False
        left, is_time = list(answer.items), gold.form == ":"  # which may leave out whether it is before noon
        if not is_time and (len(left) != len(gold.items) or len(left) > _MOST_ITEMS):
            return False
        if gold.form != "set":
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
            return False
        require_packages("grading mathematics", ["math_verify"], "eval")
        found = await (self.processes or shared_processes()).compare(_latex(gold), _latex(answer))
        if found not in ("right", "wrong"):
            self.unjudged = found
        return found == "right"


def _named(value: Value) -> tuple[str, Value]:
    """The name that an answer such as `x = 5` gives its value, and the value."""
    return (str(value.items[0]), value.items[1]) if isinstance(value, Group) and value.form == "named" else ("", value)


def _point(group: Group) -> Group:
    """A point by its coordinates, `x = 3, y = 2`."""
    named = sorted(map(_named, group.items), key=lambda one: one[0] if one[0] in "xyz" else "")
    return Group("()", tuple(value for _, value in named)) if len({name for name, _ in named} - {""}) > 1 else group


def _same_number(gold: Number, answer: Number, question: str) -> bool:
    """Whether two numbers are equal. A unit counts if both have one; percents are hundredths, or what was asked."""
    if gold.unit and answer.unit.casefold() not in ("", "%", gold.unit.casefold()):
        return False
    if answer.unit != "%":
        return answer.value in (gold.exact, gold.value)
    is_asked = gold.unit != "%" and _PERCENT_ASKED.search(question)
    return gold.exact == (answer.value if is_asked else answer.exact)


def _latex(value: Value) -> str:
    """Mathematics for the worker: decimals as fractions, so that nothing is rounded."""
    if isinstance(value, Number):
        return rf"\frac{{{value.value.numerator}}}{{{value.value.denominator}}}"
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", str(value))
    return re.sub(r"(?<![\d.])(\d*)\.(\d+)", lambda m: rf"\frac{{{int(m[1] + m[2])}}}{{{10 ** len(m[2])}}}", text)
