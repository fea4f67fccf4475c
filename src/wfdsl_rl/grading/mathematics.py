r"""Is an expression equal to the gold one? Exact rules first, then math-verify in a process of its own.

Rules decide what they can decide for certain: equal spelling, plain numbers, words, how many values there are. They
also keep from math-verify what it gets wrong: it reads words as products of letters (`east` and `seat` are equal to
it), ignores the base in `52_8`, and rounds to six decimals.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING

from wfdsl.errors import UsageError
from wfdsl_rl.grading.latex import compact, is_balanced, normal, plain, right_side, top_level_parts
from wfdsl_rl.grading.plain_numbers import Number, read_number, same_number
from wfdsl_rl.grading.text import same_text
from wfdsl_rl.grading.verdict import Verdict

if TYPE_CHECKING:
    from wfdsl_rl.grading.math_processes import Comparison, MathProcesses

LONGEST_EXPRESSION = 1_000
"""How many characters an answer may have to be compared as an expression. Our choice; the longest gold answer of
MATH-500 has 53."""
_SEVERAL = re.compile(r"\\pm|\\mp|\\\{|^\{|\\ne(?![a-zA-Z])")
_RELATION = re.compile(r"[<>]|\\(?:le|ge|lt|gt|ne)(?![a-zA-Z])")
_LETTER = re.compile(r"[a-zA-Z]")
_VARIABLE = re.compile(r"[\d\s][a-zA-Z]$")
"""`2k` may be read as a number with a unit, but of a gold answer it is a variable."""
_ODD_JOIN = re.compile(r"\\\\|\\(?:lor|vee|mid|to|l?dots|cdots|q?quad)(?![a-zA-Z])|\\text\{[^{}]*\}|\.\.+|[|&~]")
_POINT = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")
_LONGEST_CHAIN = 20
_COMMANDS = re.compile(r"\\[a-zA-Z]+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_BASED = re.compile(r"(-?[0-9A-Za-z]+)_\(?(\d+)\)?")
_IS_MATH = re.compile(r"\d|\\(?!text)|[+*/^=<>|]|(?<![^\W\d_])[^\W\d_](?![^\W\d_])")


async def judge_math(gold: str, answer: str, *, processes: MathProcesses | None = None) -> Verdict:
    """Whether `answer`, as `final_answer` gives it, is equal to `gold`."""
    gold_text, answer_text = normal(gold), normal(answer[: LONGEST_EXPRESSION + 1])
    known = by_rules(gold_text, answer_text) if len(answer) <= LONGEST_EXPRESSION else None
    if known is not None:
        is_right, reason = known
        return Verdict("right" if is_right else "wrong", answer, reason)
    if len(answer) > LONGEST_EXPRESSION:
        return Verdict("unjudged", answer, f"the answer has more than {LONGEST_EXPRESSION} characters")
    found = await _compared(gold_text, answer_text, processes)
    return _verdict(found, gold, answer, answer_text)


def by_rules(gold: str, answer: str) -> tuple[bool, str] | None:
    """What is certain about two normal expressions: whether they are equal, and why. None if algebra has to tell."""
    if not compact(answer):
        return False, "the answer is empty"
    if _same_spelling(gold, answer):
        return True, f"it is {gold}"
    for rule in (_by_numbers, _by_bases, _by_words, _by_chain, _by_count, _by_letters):
        if (known := rule(gold, answer)) is not None:
            return known
    return None


def _same_spelling(gold: str, answer: str) -> bool:
    golds, answers = (compact(gold), compact(right_side(gold))), (compact(answer), compact(right_side(answer)))
    return golds[0] == answers[0] or golds[0] == answers[1] or golds[1] == answers[0]


def _by_numbers(gold: str, answer: str) -> tuple[bool, str] | None:
    one, other = _number(gold), _number(answer)
    if one is None and other is not None:
        one = _number(right_side(gold))
    if other is None and one is not None:
        other = _number(right_side(answer))
    if one is None or other is None or _VARIABLE.search(gold):
        return None
    if same_number(one, other):
        return True, f"it equals {gold}"
    return False, f"{answer} is not {gold}"


def _number(text: str) -> Number | None:
    return read_number(plain(text))


def _by_bases(gold: str, answer: str) -> tuple[bool, str] | None:
    """`52_8` is 52 in base 8. The base may be left out, but a wrong one is wrong."""
    one, other = _BASED.fullmatch(compact(gold)), _BASED.fullmatch(compact(plain(right_side(answer))))
    if one is None:
        return None
    if other is None:
        is_right = compact(plain(right_side(answer))) == one[1]
        return is_right, f"{answer} is {'' if is_right else 'not '}{gold}"
    return one.groups() == other.groups(), f"compared digits and base with {gold}"


def _by_words(gold: str, answer: str) -> tuple[bool, str] | None:
    """Words are compared as words, never as products of letters."""
    if _is_words(gold):
        words = plain(answer)
        is_right = same_text(plain(gold), words) or same_text(plain(gold).strip("()"), words.strip("()"))
        return is_right, f"compared as text with {plain(gold)}"
    if _is_words(answer):
        return False, f"{plain(answer)!r} is not mathematics, and {gold} is asked for"
    return None


def _is_words(text: str) -> bool:
    if re.search(r"\d", text):
        return False
    if re.fullmatch(r"\(?\\text\{[^{}]*\}\)?", text):
        return True
    return not re.search(r"[\\^_=+*/<>|]", text) and bool(_WORD.search(text))


def _by_chain(gold: str, answer: str) -> tuple[bool, str] | None:
    """`1 = 2` is false, so it is no way to write 2."""
    if "=" in gold or answer.count("=") > _LONGEST_CHAIN:
        return None
    numbers = [number for part in re.split(r"(?<![<>!\\])=", answer) if (number := _number(part))]
    if any(_are_far_apart(one, other) for one, other in pairwise(numbers)):
        return False, f"{answer} contradicts itself"
    return None


def _are_far_apart(one: Number, other: Number) -> bool:
    """More than rounding explains: `1/3 = 0.33` is said with good intent."""
    difference = abs(one.value - other.value)
    return difference > max(abs(one.value), abs(other.value)) / 50 and not same_number(one, other)


def _by_count(gold: str, answer: str) -> tuple[bool, str] | None:
    """One value is asked for and several are given: wrong, whatever they are. Each value of a list has to be right."""
    golds, answers = top_level_parts(gold), top_level_parts(answer)
    if len(golds) > 1 and len(golds) == len(answers):
        return _by_parts(golds, answers)
    if len(golds) > 1 or _SEVERAL.search(gold) or _RELATION.search(answer):
        return None
    if len(answers) == 1 and _number(gold):
        answers = [part.strip() for part in _ODD_JOIN.split(answer) if part.strip()]
        answers = answers if all(_number(part) for part in answers) else [answer]
    if len(answers) == 1:
        return None
    if _is_one_value(answers):
        return by_rules(gold, answers[0])
    if (point := _POINT.fullmatch(gold)) and len(top_level_parts(point[1])) == len(answers):
        return by_rules(gold, f"({', '.join(answers)})")
    return False, f"{len(answers)} values are given, and one is asked for"


def _by_letters(gold: str, answer: str) -> tuple[bool, str] | None:
    """`R` is not `r`: math-verify would take them as the same."""
    ours, theirs = (set(_LETTER.findall(_COMMANDS.sub(" ", text))) for text in (gold, right_side(answer)))
    if ours != theirs and {letter.lower() for letter in ours} == {letter.lower() for letter in theirs}:
        return False, "a capital letter is another variable"
    return None


def _is_one_value(parts: list[str]) -> bool:
    r"""`15\frac{39}{40}, \frac{639}{40}` is one number, written twice."""
    numbers = [_number(part) for part in parts]
    return all(number is not None and number == numbers[0] for number in numbers)


def _by_parts(golds: list[str], answers: list[str]) -> tuple[bool, str] | None:
    """Lists of plain numbers, in any order."""
    numbers, left = [_number(part) for part in golds], [_number(part) for part in answers]
    if None in numbers or None in left:
        return None
    for number in numbers:
        match = next((other for other in left if number and other and same_number(number, other)), None)
        if match is None:
            return False, f"{', '.join(answers)} is not {', '.join(golds)}"
        left.remove(match)
    return True, "every value is right"


async def _compared(gold: str, answer: str, processes: MathProcesses | None) -> Comparison:
    if find_spec("math_verify") is None:
        raise UsageError("grading mathematics needs math-verify: pip install 'wfdsl[eval]'")
    from wfdsl_rl.grading.math_processes import shared_processes  # noqa: PLC0415  (only where rules do not decide)

    pool = processes or shared_processes()
    return await pool.compare(_as_list(gold), _as_list(answer))


def _as_list(text: str) -> str:
    """`1 and 2` as `1, 2`, and without words behind the expression."""
    parts = top_level_parts(text)
    return ", ".join(parts) if len(parts) > 1 else text


def _verdict(found: Comparison, gold: str, answer: str, answer_text: str) -> Verdict:
    match found.outcome:
        case "right":
            return Verdict("right", answer, f"math-verify: it equals {gold}")
        case "wrong":
            return Verdict("wrong", answer, f"math-verify: it does not equal {gold}")
        case "unread-gold":
            return Verdict("unjudged", answer, f"math-verify cannot read the gold answer {gold}")
        case "unread-answer" if not is_balanced(answer_text) or not _IS_MATH.search(answer_text):
            return Verdict("wrong", answer, "the answer is no well-formed expression")
        case "unread-answer":
            return Verdict("unjudged", answer, "math-verify cannot read the answer")
    return Verdict("unjudged", answer, found.reason)
