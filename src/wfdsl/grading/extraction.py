r"""Extraction of the final answer of a reply: an expression, letters, a text or a program.

The rules are the same for every kind of task: thinking is left out; the last marked answer (box, tag, `#### x`, "the
answer is x") counts; without any, the last line counts: its last number or expression, its last letter, or the line.
An expression with several values ("either 3 or 4") keeps them all, so that a hedged answer is not right.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from wfdsl.grading.choice import final_letters
from wfdsl.grading.markers import MOST_MARKED, MarkedAnswer, marked_answers
from wfdsl.grading.quantities import PLAIN
from wfdsl.grading.wording import (
    has_other,
    is_asked,
    is_changed_after,
    is_changed_before,
    is_denied,
    retractions,
    without_struck,
)
from wfdsl.language.reasoning import after_reasoning
from wfdsl.tasks.task import Kind

LONGEST_TAIL = 20_000
"""How many characters at the end of a reply are searched. Our choice: an answer further up is not a final one."""
_SAYS_MATH = re.compile(r"[\d\\$=^½⅓⅔¼¾π∞]|^\W*[A-Za-z]\W*$")
_SENTENCE_END = re.compile(r"(?:(?<=[\w)\"'*]{3}[.!?])|(?<=\d[.!?]))\s+(?=[A-Z(\[\"'*])")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+?)\*\*|__(?=\S)([^_\n]+?)__")
_MARKS = "*_`\"'“”‘’ \t\r\n"
_SPAN = re.compile(
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|"
    r"(?<![\\$])\$(?![\s$])((?:\\\$|[^$\n])+?)(?<![\s\\])\$(?!\d)|(?<![\\$])\$[ ]((?:\\\$|[^$\n])+?)[ ]\$(?!\s?\d)",
    re.DOTALL,
)
"""Mathematics between dollar signs, brackets or parentheses. A dollar sign before a digit is money."""
_PROSE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}(?![a-zA-Z(])|[-+*/=]\s*$")
_SPELLED = re.compile(r"\\[a-zA-Z]+(?:\{[^{}]*[a-zA-Z ]{3,}[^{}]*\})?")
_REASON = re.compile(
    r"(?<!\s)\s*(?:,\s*(?:because|since|as|so|which|where|when|given|making|meaning|but)\b|"
    r"\b(?:because|since|which|given that|so that)\b|"
    r"(?<![.\d])\.(?=\s|$)|(?<=\d)\.(?=\s|$)|[!?](?=\s|$)|\n|\s[—–]\s)"
)
_LEAD = re.compile(
    r"(?:\b(?:approximately|about|around|roughly|exactly|equal to|equals|simply|just|that|therefore|thus|indeed|now|"
    r"clearly|obviously|the (?:number|value|sum|total|result)(?: of [a-z ]{1,40} is|(?: of| is)\b)|"
    r"is|be|a total of|of)\b\s*|[:=≈~]\s*)+",
    re.IGNORECASE,
)
_NOT_BUT = re.compile(r"\Anot\b[^.\n]{1,80}?\b(?:but(?:\s+rather)?|rather)\s+")
_ATOM = (
    r"(?>\d[\d,]*+(?:\.\d++)?+|\.\d++|\\[a-zA-Z]++|\\.|sqrt|pi|sin|cos|tan|log|ln|exp|infty|infinity|"
    r"[A-Za-z](?![A-Za-z])|[π∞√θ½⅓⅔¼¾²³°±])"
)
_EXPRESSION = re.compile(
    rf"[\s+\-−*/^=(){{}}\[\]|<>,;!_'·×÷%∪∩∈≤≥≠]*+(?:{_ATOM}[\s+\-−*/^=(){{}}\[\]|<>,;.!_'·×÷%∪∩∈≤≥≠]*+)++"
)
"""Atoms with separators between them. Nothing is tried twice: a comma or a full stop fits a number and a separator, so
with backtracking a long row of digits would take exponential time."""
_FRACTION = rf"{PLAIN}(?:\s+\d+/\d+|\s?/\s?\d+(?:\.\d+)?)?"
_POWER = r"(?:e[-+]?\d+|\s?(?:×|x|\*|\\times)\s?10\s?\^\s?\{?-?\d+\}?)?"
_NUMBER = rf"(?<![\w.\\])[-−+]?[$€£¥]?[-−]?{_FRACTION}{_POWER}(?![\d])\s?(?:\\?%|percent\b)?"
_NUMBERS = re.compile(_NUMBER, re.IGNORECASE)
_JOIN = (
    r"(?:\s*+(?:[a-zA-Z°]{1,12}\s*+)?"
    r"(?:,(?:\s*+(?:and|or|maybe|perhaps))?|;|/|\band\b|\bor\b|\band/or\b|\bto\b|\bthrough\b|[-–—~]|\|)"
    r"\s*+(?:(?:maybe|perhaps|possibly|even)\s*+)?)"
)
_LIST = re.compile(rf"{_NUMBER}(?:{_JOIN}{_NUMBER})+", re.IGNORECASE)
_SCALE = re.compile(r"\s*(?:hundred|thousand|million|billion|trillion)\b", re.IGNORECASE)
_BASE = re.compile(r"\s*\b(?:in\s+)?base\s+(\d+|ten|two|eight)\b", re.IGNORECASE)
_SIGN = re.compile(r"(?<!\w)(?:negative|minus)\s+\Z", re.IGNORECASE)
_VALUE = re.compile(r"(?<![=\w^_/.-])(?<![=][ ])[-−+]?[$€£¥]?(?:\d|\.\d|\\[a-zA-Z])")
_STATEMENT_END = re.compile(r"[.!?](?=\s|\Z)|\n")
_REMARK = re.compile(r"(\d[^()\n]{0,40}?)\s\([^()\n]{1,200}\)(?=[\s.!*_]*\Z)")
_OR = re.compile(r",?\s+(?:or|and)\s+|,\s+(?=[a-z]\s?=)")
_EITHER = re.compile(r"\b(?:or|nor)\s*\Z", re.IGNORECASE)
_DENIES_BOX = re.compile(
    r"(?:\b(?:not|never|cannot)|n['’]t)\s+(?:equal\s+(?:to\s+)?|be\s+)?[$\\(\[*]*\Z", re.IGNORECASE
)
_ADDS_TO_BOX = re.compile(r"[$\\)\].*\s]*(?:\?|,?\s*\bor\s+(?:maybe\s+|perhaps\s+)?[-$\\(]{0,3}\d)", re.IGNORECASE)
_MIXED = re.compile(r"(?<![\w.])(?:\d+\s?)?(?:[½⅓⅔¼¾]|\d*[√π])(?:\s?[\d√π]+)*")
_LONGEST_SAID = 2_000
"""How many characters of a phrase, or of the last line, are read. Our choice."""
LONGEST_PROGRAM = 200_000
"""How many characters of a reply without a fence are tried as a program. Our choice."""
_UNFENCED = re.compile(r"\[BEGIN\](.*?)(?:\[DONE\]|\Z)|<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
_PROGRAM = re.compile(
    r"^(?:(?:async\s+)?def\s+\w+\s*\(|class\s+\w+|import\s+\w+|from\s+\w[\w.]*\s+import\s|@\w)", re.MULTILINE
)
_MOST_CUTS = 5
"""How often the end of a reply is cut off to find the program in it. Our choice."""
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n`]*$", re.MULTILINE)
_PYTHON = frozenset({"", "python", "python3", "py", "py3"})
_STATEMENTS = (
    ast.Assign, ast.AsyncFunctionDef, ast.AugAssign, ast.ClassDef, ast.For, ast.FunctionDef, ast.If, ast.Import,
    ast.ImportFrom, ast.Return, ast.Try, ast.While, ast.With,
)  # fmt: skip
"""What makes a text a program: `Paris` and `42` are expressions of Python too."""


def final_answer(text: str, kind: Kind, *, choices: Sequence[str] = ()) -> str | None:
    r"""The final answer of a reply, or None if it gives none.

    `math`: an expression, several values joined by commas. `choice`: letters such as `B`, or `A, C` if several are
    given; `choices` are the options, so that one that is quoted in full is read as its letter. `code`: a program.
    `text` and `custom`: the marked answer, or the last line.
    """
    if kind == "code":
        return final_code(text)
    part = without_struck(_tail(after_reasoning(text))).strip()
    if not part:
        return None
    if kind == "choice":
        return final_letters(part, choices)
    return _final_math(part) if kind == "math" else _final_text(part)


def final_code(text: str, *, wanted: str = "") -> str | None:
    """The final program of a reply, or None.

    Precedence: the last fenced block that defines `wanted` (a function, or `Class.method`); the last block in Python;
    without any fence, what is between `[BEGIN]` and `[DONE]` or in an `<answer>` tag, the whole reply if it is a
    program or the indented body of a function, or its part from the first definition or import on. A block that is cut
    off at the end of the reply counts.
    """
    text = after_reasoning(text)
    blocks = [code for language, code in _blocks(text) if language.lower() in _PYTHON and code.strip()]
    if not blocks:
        return None if _FENCE.search(text) else _unfenced(text)
    definition = _definition(wanted)
    defining = [code for code in blocks if definition.search(code)] if wanted else []
    return (defining or blocks)[-1]


def _tail(text: str) -> str:
    """The end of a text, from the start of a line where it had to be cut."""
    if len(text) <= LONGEST_TAIL:
        return text
    cut = text[-LONGEST_TAIL:]
    return cut[cut.find("\n") + 1 :] if "\n" in cut else cut


def _final_math(text: str) -> str | None:
    """A marked answer in plain words ("the answer is reasonable") gives way to one that has mathematics in it."""
    found = marked_answers(text)[-MOST_MARKED:]
    for marked in reversed(found):
        value = _math_of(marked, text[: marked.start], text[marked.end : marked.end + 100])
        if value and (marked.form != "phrase" or _SAYS_MATH.search(value)):
            return _corrected(value, text[marked.start : marked.start + _LONGEST_SAID])
    words = _math_of(found[-1], "", "") if found and not re.search(r"\d", text[found[-1].start :]) else None
    return words or _last_value(text)


def _corrected(value: str, said: str) -> str:
    """The value that a correction after the marked answer names, if there is one: `5. No, 6`. `5. Or 6` names both."""
    for found in reversed(retractions(said)):
        if found["word"] != "or" and _VALUE.match(said, found.end()):
            other = _leading_value(said[found.end() :].splitlines()[0]) or value
            return f"{value} or {other}" if found["word"] == "Or" else other
    return value


def _math_of(marked: MarkedAnswer, before: str, after: str) -> str | None:
    if marked.form == "box":
        return f"not {marked.text}" if _DENIES_BOX.search(before[-40:]) or _ADDS_TO_BOX.match(after) else marked.text
    return (
        f"not {marked.text.strip()}" if marked.form == "phrase" and is_denied(before) else _leading_value(marked.text)
    )


def _final_text(text: str) -> str | None:
    found = marked_answers(text)
    if not found:
        return _last_line(text)
    last = found[-1]
    if last.form != "phrase":
        return _cleaned(last.text)
    if corrected := retractions(text[last.start : last.start + _LONGEST_SAID]):
        return _last_line(text[last.start + corrected[-1].end() :].strip() or last.text)
    said = _cleaned(_SENTENCE_END.split(last.text, maxsplit=1)[0])
    return f"{text[: last.start][-100:]}{said}" if is_denied(text[: last.start]) else said


def _last_line(text: str) -> str | None:
    """What is bold in the last line, unless its sentence denies it, asks or lists; else the line."""
    line = text.splitlines()[-1]
    bold = list(_BOLD.finditer(line))
    if not bold:
        return _cleaned(line)
    before, after = line[: bold[-1].start()], line[bold[-1].end() :]
    is_listed = len(bold) > 1 and _OR.fullmatch(line[bold[-2].end() : bold[-1].start()])
    if is_listed or is_denied(before) or is_asked(after) or _EITHER.search(before):
        return line.strip()
    return _cleaned(bold[-1][1] or bold[-1][2])


def _cleaned(text: str) -> str | None:
    value = text.strip(_MARKS)
    inner = re.fullmatch(r"\\(?:text|mbox|mathrm|textbf)\{([^{}]*)\}", value)
    value = (inner[1] if inner else value).strip(_MARKS)
    if not value.endswith("..."):
        value = value.removesuffix(".")
    return value.rstrip(_MARKS) or None


def _leading_value(said: str) -> str | None:
    """What a phrase says first: an expression, a number, several of them, or words if there is neither."""
    said = said[:_LONGEST_SAID].strip().strip("*_`\"' ")
    said = said[found.end() :] if (found := _LEAD.match(said)) else said
    said = _NOT_BUT.sub("", said)
    clause, spans = _clause(said), _spans(said)
    if spans and spans[0][0] < len(clause):
        value, end = _joined(said, spans)
        return _stated(said, spans[0][0], end, value)
    if parts := _expressions(clause):
        return _stated(said, 0, len(clause), parts)
    if number := _first_number(clause):
        return _stated(said, *number.span(), number[0])
    return clause.strip(" *_`\"'.,;:") or None


def _last_value(text: str) -> str | None:
    """The last expression or number of a text that does not say which one is its answer."""
    line = next((line for line in reversed(text.splitlines()) if re.search(r"\d|\$.+\$|\\[(\[\]]", line)), "")
    window = text[max(0, text.rfind(line) - 2_000) :] if line.strip().startswith(("$$", "\\]")) else line
    window = _REMARK.sub(r"\1", window[-_LONGEST_SAID:])
    spans, numbers = _spans(window), list(_NUMBERS.finditer(window))
    if spans and (not numbers or numbers[-1].start() < spans[-1][1]):
        start, end, value = spans[-1]
        return _stated(window, start, end, _after_equals(value))
    if not numbers:
        return None
    hedged = [found for found in _LIST.finditer(window) if found.end() >= numbers[-1].end() and _is_hedge(found[0])]
    last = hedged[-1] if hedged else numbers[-1]
    return _stated(window, *last.span(), last[0])


def _stated(said: str, start: int, end: int, value: str) -> str | None:
    """The value, with its scale, sign and base; the whole statement if its other words deny or change the value."""
    while scale := _SCALE.match(said, end):
        value, end = value + scale[0], scale.end()
    if base := _BASE.match(said, end):
        value, end = f"{value.strip()}_{base[1]}", base.end()
    if sign := _SIGN.search(said, max(0, start - 20), start):
        value, start = f"-{value}", sign.start()
    before, after = said[:start], said[end:]
    rest = _STATEMENT_END.split(after, maxsplit=1)[0]
    if (
        is_denied(before) or is_changed_before(before) or is_changed_after(after) or is_asked(after[len(rest) :])
        or has_other(rest, _VALUE)
    ):  # fmt: skip
        return (said[: end + len(rest) + 1]).strip(" *_`\"'") or None
    return value.strip() or None


def _is_hedge(listed: str) -> bool:
    return bool(re.search(r"\bor\b", listed, re.IGNORECASE)) or len(re.findall(r"[,;|]\s", listed)) >= 2


def _clause(said: str) -> str:
    end = _REASON.search(said)
    return said[: end.start()] if end else said


def _is_expression(clause: str) -> bool:
    text = clause.strip(" *_`.")
    if len(text) > 500 or not text:
        return False
    if re.search(r"\\text", text):
        return text.startswith("\\") or bool(re.match(r"[-\d.(]", text))
    return bool(_EXPRESSION.fullmatch(text)) and not re.fullmatch(r"[$€£¥]?[\d,.]+\s*[a-zA-Z]", text)


def _spans(text: str) -> list[tuple[int, int, str]]:
    found = [(m.start(), m.end(), next(g for g in m.groups() if g is not None)) for m in _SPAN.finditer(text)]
    return [span for span in found if not _PROSE.search(_SPELLED.sub("", span[2]))]


def _expressions(clause: str) -> str:
    """The expression that a clause is, or the expressions that it lists; empty if it has other words."""
    parts = [part.strip(" *_`") for part in _OR.split(clause)]
    return ", ".join(parts) if all(map(_is_expression, parts)) else ""


def _joined(said: str, spans: list[tuple[int, int, str]]) -> tuple[str, int]:
    """The first piece of mathematics, with those that are listed with it, and where they end."""
    values, end = [spans[0][2].strip()], spans[0][1]
    for start, stop, value in spans[1:]:
        if not re.fullmatch(r"\s*(?:,|;|/|,?\s*(?:and|or|to|and/or))\s*", said[end:start]):
            break
        values.append(value.strip())
        end = stop
    percent = re.match(r"\s?(?:\\?%|percent\b)", said[end:])
    return ", ".join(values) + ("%" if percent else ""), end + (percent.end() if percent else 0)


def _first_number(clause: str) -> re.Match[str] | None:
    first = _MIXED.search(clause) or _NUMBERS.search(clause)
    return (_LIST.match(clause, first.start()) or first) if first else None


def _after_equals(expression: str) -> str:
    r"""`3 + 4 = 7` ends with 7; `x = 1, y = 2` and inequalities stay whole."""
    text = expression.strip().rstrip(".,")
    parts = re.split(r"(?<![<>!\\])=", text)
    if len(parts) == 1 or re.search(r",(?!\d{3}(?!\d))", parts[-1]) or not parts[-1].strip():
        return text
    return parts[-1].strip() if len(parts) > 2 or re.search(r"\d", parts[-1]) else text


def _definition(wanted: str) -> re.Pattern[str]:
    name = re.escape(wanted.split(".", 1)[0])
    return re.compile(rf"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+{name}\b|^{name}[ \t]*=", re.MULTILINE)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            yield opened[2], _without_margin(text[opened.end() + 1 : fence.start()], opened)
            opened = None
    if opened is not None:
        yield opened[2], _without_margin(text[opened.end() + 1 :], opened)


def _without_margin(code: str, fence: re.Match[str]) -> str:
    """A fence inside a list item is indented, and so is all that it holds."""
    margin = fence[0][: len(fence[0]) - len(fence[0].lstrip())]
    if not margin:
        return code
    return "".join(line.removeprefix(margin) for line in code.splitlines(keepends=True))


def _unfenced(text: str) -> str | None:
    marked = list(_UNFENCED.finditer(text))
    if marked:
        return _bare((marked[-1][1] or marked[-1][2] or "").strip("\n"))
    if (whole := _bare(text)) is not None:
        return whole
    begun = _PROGRAM.search(text)
    return _longest_program(text[begun.start() :]) if begun else None


def _longest_program(text: str) -> str | None:
    """The text up to what is not Python any more, such as an explanation after the program."""
    lines = text[:LONGEST_PROGRAM].splitlines(keepends=True)
    for _ in range(_MOST_CUTS):
        try:
            ast.parse("".join(lines))
        except SyntaxError as error:
            lines = lines[: max(min(error.lineno or 1, len(lines)) - 1, 0)]
        except (ValueError, RecursionError, MemoryError):
            return None
        else:
            break
    return _bare("".join(lines).rstrip() + "\n") if lines else None


def _bare(text: str) -> str | None:
    if not text.strip() or len(text) > LONGEST_PROGRAM:
        return None
    is_body = text[0] in " \t"
    try:
        tree = ast.parse("if True:\n" + text if is_body else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return text if any(isinstance(node, _STATEMENTS) for node in tree.body) else None
