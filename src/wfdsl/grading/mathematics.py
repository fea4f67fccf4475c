r"""Mathematical answers: LaTeX normalisation, exact rules, and then math-verify in a process of its own.

Rules decide what is certain: equal spelling, plain numbers, words, the number of values. They also decide what
math-verify gets wrong: it reads words as products of letters (`east` and `seat` are equal to it), ignores the base in
`52_8`, and rounds to six decimals. Normalisation does only what cannot change the meaning: `\dfrac12`, `1/2` between
dollars and `½` become the same text.
"""

from __future__ import annotations

import re
from itertools import pairwise

from wfdsl.grading.math_processes import Comparison, MathProcesses, shared_processes
from wfdsl.grading.quantities import Number, canonical_unit, read_number, same_number
from wfdsl.grading.text import same_text
from wfdsl.grading.verdict import Verdict
from wfdsl.grading.wording import is_changed_after
from wfdsl.installation import require_packages

LONGEST_EXPRESSION = 1_000
"""How many characters an answer may have to be compared as an expression. Our choice; the longest gold answer of
MATH-500 has 53."""
_SEVERAL = re.compile(r"\\pm|\\mp|\\\{|^\{|\\ne(?![a-zA-Z])")
_RELATION = re.compile(r"[<>]|\\(?:le|ge|lt|gt|ne)(?![a-zA-Z])")
_STARTS_WITH_RELATION = re.compile(r"(?:[a-z]\s*)?(?:[<>~]|\\(?:le|ge|lt|gt|ne|neq|not|sim|neg|lnot)(?![a-zA-Z]))")
_LETTER = re.compile(r"[a-zA-Z]")
_VARIABLE = re.compile(r"[\d\s][a-zA-Z]$")
"""`2k` may be read as a number with a unit, but of a gold answer it is a variable."""
_ODD_JOIN = re.compile(r"\\\\|\\(?:lor|vee|mid|to|l?dots|cdots|q?quad)(?![a-zA-Z])|\\text\{[^{}]*\}|\.\.+|[|&~]")
_POINT = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")
_CHAIN = re.compile(r"(?<![<>!\\])=|\\approx(?![a-zA-Z])|≈")
_LONGEST_CHAIN = 20
_COMMANDS = re.compile(r"\\[a-zA-Z]+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_WITH_UNIT = re.compile(r"(.*?[\d})\]a-z])\s*(?:\\text\{([^{}\d]*)\}|(?<![a-zA-Z\\])([a-z]{2,12}))((?:\^\d)?)")
_JOINED_WORDS = re.compile(r"\b(?:and|or|not|to|maybe|if|when|for|is|are|at|no)\b")
_SUBSCRIPT = re.compile(r"[\d.}]_")
_PROSE = re.compile(r"(?<![^\W\d_])(?:[^\W\d_]{3,}|or|no|if|of|at|is|to)(?![^\W\d_])")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{\w+\*?\}")
_BASED = re.compile(r"(-?[0-9A-Za-z]+)_\(?(\d+)\)?")
_IS_MATH = re.compile(r"\d|\\(?!text)|[+*/^=<>|]|(?<![^\W\d_])[^\W\d_](?![^\W\d_])")
_CHARACTERS = {
    "−": "-", "–": "-", "—": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "π": r"\pi ",
    "∞": r"\infty ",
    "√": r"\sqrt ", "±": r"\pm ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ",
    "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "λ": r"\lambda ", "µ": r"\mu ", "μ": r"\mu ", "°": r"^\circ ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⁰": "^0", "¹": "^1", "²": "^2", "³": "^3", "⁴": "^4", "⁵": "^5", "⁶": "^6", "⁷": "^7", "⁸": "^8", "⁹": "^9",
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "′": "'",
}  # fmt: skip
_TABLE = str.maketrans(_CHARACTERS)
_FUNCTIONS = r"sin|cos|tan|cot|sec|csc|log|ln|exp|arcsin|arccos|arctan"
_REWRITES = [
    (re.compile(pattern), by)
    for pattern, by in (
        (
            r"\\(?:displaystyle|textstyle|limits|bigl?|bigr|Bigl?|Bigr|biggl?|biggr|left|right|mathrm\{~\})(?![a-zA-Z])\.?",
            "",
        ),
        (r"\{,\}|(?<=\d),\s*\\!\s*(?=\d{3}(?!\d))", ","),
        (r"(?<!\\)\\[,!;: ]|(?<!\\)~|\\q?quad(?![a-zA-Z])", " "),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\(?:text|mbox|mathrm|mathbf|textbf|textit|rm|operatorname)\s*\{([^{}]*)\}", r"\\text{\1}"),
        (r"\^\s*\{?\s*(?:\\circ|\\degree)\s*\}?|\\degree(?![a-zA-Z])", r" degrees"),
        (r"\\\$|\$", ""),
        (r"\\frac\s*(\d)\s*(\d)(?!\d)", r"\\frac{\1}{\2}"),
        (r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{"),
        (r"\\frac\s*\{([^{}]*)\}\s*([0-9a-zA-Z])", r"\\frac{\1}{\2}"),
        (r"\\sqrt\s*(\d|[a-zA-Z](?![a-zA-Z]))", r"\\sqrt{\1}"),
        (r"\*\*", "^"),
        (r"(?<![\\a-zA-Z])sqrt\s*\(([^()]*)\)|\\sqrt\s*\(([^()]*)\)", lambda m: rf"\sqrt{{{m[1] or m[2] or ''}}}"),
        (rf"(?<![\\a-zA-Z])(pi|infty|theta|alpha|beta|lambda|{_FUNCTIONS})(?![a-zA-Z])", r"\\\1 "),
        (r"(?<![\\a-zA-Z])(?:infinity|oo)(?![a-zA-Z])", r"\\infty "),
        (r"\\leq(?![a-zA-Z])", r"\\le"),
        (r"\\geq(?![a-zA-Z])", r"\\ge"),
        (r"\^\s*\{(\w)\}", r"^\1"),
        (r"_\s*\{(\w+)\}", r"_\1"),
    )
]
_EDGES = " \t\n;:"
_WORDS = re.compile(r"\\text\{([^{}]*)\}")


async def grade_math(gold: str, answer: str, *, processes: MathProcesses | None = None) -> Verdict:
    """Whether `answer`, as `final_answer` gives it, is equal to `gold`."""
    gold_text, answer_text = normal(gold), _without_unit(normal(answer[: LONGEST_EXPRESSION + 1]), gold)
    if len(answer) > LONGEST_EXPRESSION:
        return _not_compared(gold_text, answer, f"the answer has more than {LONGEST_EXPRESSION} characters")
    known = by_rules(gold_text, answer_text)
    if known is not None:
        is_right, reason = known
        return Verdict("right" if is_right else "wrong", answer, reason)
    for part in _constant_parts(gold_text, answer_text):
        found = await _compared(gold_text, part, processes)
        if found.outcome != "right":
            break
    return _verdict(found, gold_text, answer, answer_text)


def by_rules(gold: str, answer: str) -> tuple[bool, str] | None:
    """What is certain about two normal expressions: whether they are equal, and why. None if algebra has to tell."""
    if not _compact(answer):
        return False, "the answer is empty"
    if _same_spelling(gold, answer):
        return True, f"it is {gold}"
    for rule in (_by_numbers, _by_relation, _by_bases, _by_words, _by_chain, _by_count, _by_prose, _by_letters):
        if (known := rule(gold, answer)) is not None:
            return known
    return None


def normal(text: str) -> str:
    """An expression in one spelling, with spaces where they may matter."""
    text = text.translate(_TABLE).strip(_EDGES).rstrip("." + _EDGES)
    for pattern, by in _REWRITES:
        text = pattern.sub(by, text)
    return _without_parentheses(" ".join(text.split()).strip(_EDGES).removesuffix("."))


def _same_spelling(gold: str, answer: str) -> bool:
    golds, answers = (_compact(gold), _compact(_right_side(gold))), (_compact(answer), _compact(_right_side(answer)))
    return golds[0] == answers[0] or golds[0] == answers[1] or golds[1] == answers[0]


def _by_numbers(gold: str, answer: str) -> tuple[bool, str] | None:
    one, other = _number(gold), _number(answer)
    if one is None and other is not None:
        one = _number(_right_side(gold))
    if other is None and one is not None:
        other = _number(_right_side(answer))
    if one is None or other is None or _VARIABLE.search(gold):
        return None
    if same_number(one, other):
        return True, f"it equals {gold}"
    return False, f"{answer} is not {gold}"


def _number(text: str) -> Number | None:
    return read_number(_plain(text))


def _by_relation(gold: str, answer: str) -> tuple[bool, str] | None:
    r"""`<5` and `\\ne 5` name no value."""
    if _STARTS_WITH_RELATION.match(answer) and not _RELATION.search(gold):
        return False, f"{answer} is not a value"
    return None


def _by_bases(gold: str, answer: str) -> tuple[bool, str] | None:
    """`52_8` is 52 in base 8. The base may be left out, but a wrong one is wrong."""
    one, other = _BASED.fullmatch(_compact(gold)), _BASED.fullmatch(_compact(_plain(_right_side(answer))))
    if one is None and "_" not in gold and _SUBSCRIPT.search(answer):
        number, decimal = _number(gold), read_number(answer.removesuffix("_10"))
        is_right = number is not None and decimal is not None and same_number(number, decimal)
        return is_right, f"{answer} is {'' if is_right else 'not '}{gold}"
    if one is None:
        return None
    if other is None:
        is_right = _compact(_plain(_right_side(answer))) == one[1]
        return is_right, f"{answer} is {'' if is_right else 'not '}{gold}"
    return one.groups() == other.groups(), f"compared digits and base with {gold}"


def _by_words(gold: str, answer: str) -> tuple[bool, str] | None:
    """Words are compared as words, never as products of letters."""
    if _is_words(gold):
        words = _plain(answer)
        is_right = same_text(_plain(gold), words) or same_text(_plain(gold).strip("()"), words.strip("()"))
        return is_right, f"compared as text with {_plain(gold)}"
    if _is_words(answer):
        return False, f"{_plain(answer)!r} is not mathematics, and {gold} is asked for"
    return None


def _is_words(text: str) -> bool:
    if re.search(r"\d", text):
        return False
    if re.fullmatch(r"\(?\\text\{[^{}]*\}\)?", text):
        return True
    return not re.search(r"[\\^_=+*/<>|]", text) and bool(_WORD.search(text))


def _by_chain(gold: str, answer: str) -> tuple[bool, str] | None:
    """`1 = 2` is false, so it is not a way to write 2. `1/3 = 0.33` is rounded, and right if either side is."""
    if "=" in gold or "\\approx" in gold:
        return None
    parts = _CHAIN.split(answer, maxsplit=_LONGEST_CHAIN)
    numbers = [number for part in parts if (number := _number(part))]
    is_rough = "approx" in answer or "≈" in answer
    if any(not _is_rounded(one, other, is_rough=is_rough) for one, other in pairwise(numbers)):
        return False, f"{answer} contradicts itself"
    wanted = _number(gold)
    if wanted and len(numbers) > 1 and _number(parts[-1]):
        is_right = any(same_number(wanted, number) for number in numbers)
        return is_right, f"{answer} is {'' if is_right else 'not '}{gold}"
    return None


def _is_rounded(one: Number, other: Number, *, is_rough: bool) -> bool:
    """Whether two numbers are equal, or one of them is the other with fewer decimals; with `\\approx`, with none."""
    if same_number(one, other):
        return True
    return any(
        abs(one.value - other.value) * 2 * 10**number.decimals <= 1
        for number in (one, other)
        if number.decimals or is_rough
    )


def _by_count(gold: str, answer: str) -> tuple[bool, str] | None:
    """One value is asked for and several are given: wrong, whatever they are. Each value of a list has to be right."""
    golds, answers = _top_level_parts(gold), _top_level_parts(answer)
    if len(golds) > 1 and len(golds) == len(answers):
        return _by_parts(golds, answers)
    if len(golds) > 1 or _SEVERAL.search(gold) or _RELATION.search(answer):
        return None
    if len(answers) == 1 and _number(gold):
        answers = [part.strip() for part in _ODD_JOIN.split(answer) if part.strip()]
        answers = answers if all(_number(part) for part in answers) else [answer]
    if len(answers) <= 1:
        return None
    if _is_one_value(answers):
        return by_rules(gold, answers[0])
    if (point := _POINT.fullmatch(gold)) and len(_top_level_parts(point[1])) == len(answers):
        return by_rules(gold, f"({', '.join(answers)})")
    return False, f"{len(answers)} values are given, and one is asked for"


def _by_prose(gold: str, answer: str) -> tuple[bool, str] | None:
    """Words that are no unit make a statement of an expression: `not 5`, `5 or more`."""
    if "?" in answer:
        return False, f"{answer} is a question"
    words = _PROSE.findall(_COMMANDS.sub(" ", _ENVIRONMENT.sub(" ", _plain(answer))))
    if words and not _PROSE.search(_COMMANDS.sub(" ", _ENVIRONMENT.sub(" ", _plain(gold)))):
        return False, f"{_plain(answer)!r} is not only an expression"
    return None


def _by_letters(gold: str, answer: str) -> tuple[bool, str] | None:
    """`R` is not `r`: math-verify would take them as the same."""
    ours, theirs = (set(_LETTER.findall(_COMMANDS.sub(" ", text))) for text in (gold, _right_side(answer)))
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
    require_packages("grading mathematics", ["math_verify"], "eval")
    pool = processes or shared_processes()
    return await pool.compare(_as_list(gold), _as_list(answer))


def _as_list(text: str) -> str:
    """`1 and 2` as `1, 2`, and without words after the expression."""
    parts = _top_level_parts(text)
    return ", ".join(parts) if len(parts) > 1 else text


def _verdict(found: Comparison, gold: str, answer: str, answer_text: str) -> Verdict:
    match found.outcome:
        case "right":
            return Verdict("right", answer, f"math-verify: it equals {gold}")
        case "wrong":
            return Verdict("wrong", answer, f"math-verify: it does not equal {gold}")
        case "unread-gold":
            return Verdict("unjudged", answer, f"math-verify cannot read the gold answer {gold}")
        case "unread-answer" if not _is_balanced(answer_text) or not _IS_MATH.search(answer_text):
            return Verdict("wrong", answer, "the answer is not a well-formed expression")
        case "unread-answer":
            return _not_compared(gold, answer, "math-verify cannot read the answer")
        case "not-started":
            return Verdict("unjudged", answer, found.reason)
    return _not_compared(gold, answer, found.reason)


def _not_compared(gold: str, answer: str, reason: str) -> Verdict:
    """Where a plain number is asked for, an answer that cannot be compared is not one, and so wrong.

    Otherwise a worker could choose not to be graded whenever it is unsure.
    """
    return Verdict("wrong" if _number(gold) else "unjudged", answer, reason)


def _constant_parts(gold: str, answer: str) -> list[str]:
    """What has to equal the gold answer: both sides of `77 = 2 + 75`, all of `x = 5` and of anything else."""
    parts = [part.strip() for part in _CHAIN.split(answer, maxsplit=_LONGEST_CHAIN)]
    exact = [part for part in parts if not ((number := _number(part)) and number.decimals)]
    constant = [part for part in exact if part and not _LETTER.search(_COMMANDS.sub(" ", part))]
    return constant if len(parts) > 1 and constant and not _CHAIN.search(gold) and "," not in answer else [answer]


def _without_unit(answer: str, gold: str) -> str:
    r"""`16\pi \text{ cm}^2` is `16\pi`: units after an expression, if the gold answer has no words."""
    found = _WITH_UNIT.fullmatch(answer)
    if found is None or _PROSE.search(_COMMANDS.sub(" ", _plain(gold))) or _number(answer):
        return answer
    words = found[2] if found[2] is not None else found[3]
    is_unit = words.strip() and not is_changed_after(words) and not _JOINED_WORDS.search(words)
    return found[1] if is_unit and (found[2] is not None or canonical_unit(words + found[4])) else answer


def _compact(normal_text: str) -> str:
    """Without any space: equal texts are equal expressions."""
    return re.sub(r"\s+", "", normal_text)


def _plain(normal_text: str) -> str:
    r"""Without the marks around words: `18 \text{ cm}^2` becomes `18 cm^2`."""
    return " ".join(_WORDS.sub(r" \1 ", normal_text).replace(" ^", "^").split())


def _right_side(normal_text: str) -> str:
    r"""The value of `x = value` and of `x \in set`; else the text itself."""
    found = re.fullmatch(
        r"\\?[a-zA-Z]\w{0,8}(?:\([a-z](?:,\s*[a-z])*\))?\s*(?:=|\\in(?![a-zA-Z]))\s*([^=<>]+)", normal_text
    )
    return found[1].strip() if found else normal_text


def _top_level_parts(normal_text: str) -> list[str]:
    """The values of a list: split at commas, semicolons, `and` and `or` outside of brackets. Thousands stay whole."""
    text = re.sub(r"\\text\{\s*,?\s*(?:and|or)\s*\}|,?\s*\b(?:and|or)\b(?![^{]*\})", " , ", normal_text)
    parts, depth, start = [], 0, 0
    thousands = {m.start() + len(m[0]) - 4 for m in re.finditer(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])", text)}
    thousands |= {at for m in re.finditer(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])", text) for at in range(*m.span())}
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter in ",;" and depth <= 0 and at not in thousands:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*parts, text[start:].strip()) if part]


def _is_balanced(text: str) -> bool:
    """Whether braces are closed in the order in which they are opened; of other brackets, only how many there are."""
    depth = 0
    for letter in re.sub(r"\\.", "", text):
        depth += (letter == "{") - (letter == "}")
        if depth < 0:
            return False
    return depth == 0 and sum(text.count(opening) for opening in "([") == sum(text.count(closing) for closing in ")]")


def _without_parentheses(text: str) -> str:
    """`(5)` is 5: one pair of parentheses around a single number says nothing."""
    found = re.fullmatch(r"\(\s*(-?[\d.]+)\s*\)", text)
    return found[1] if found else text
