r"""The expression that a piece of prose gives: "5 apples because 2 + 3 = 5" gives 5, "either 3 or 4" gives both.

Several values are kept together, so that the comparison sees them all: who hedges is not right.
"""

from __future__ import annotations

import re

from wfdsl_rl.grading.plain_numbers import PLAIN

_SPAN = re.compile(
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|"
    r"(?<![\\$])\$(?![\s$])((?:\\\$|[^$\n])+?)(?<![\s\\])\$(?!\d)|(?<![\\$])\$[ ]((?:\\\$|[^$\n])+?)[ ]\$(?!\s?\d)",
    re.DOTALL,
)
"""Mathematics between dollar signs, brackets or parentheses. A dollar sign before a digit is money."""
_PROSE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}(?![a-zA-Z(])|[-+*/=]\s*$")
_SPELLED = re.compile(r"\\[a-zA-Z]+(?:\{[^{}]*[a-zA-Z ]{3,}[^{}]*\})?")
_REASON = re.compile(
    r"\s*(?:,\s*(?:because|since|as|so|which|where|when|given|making|meaning|but)\b|"
    r"\b(?:because|since|which|given that|so that)\b|"
    r"(?<![.\d])\.(?=\s|$)|(?<=\d)\.(?=\s|$)|[!?](?=\s|$)|\n|\s[—–]\s)"
)
_LEAD = re.compile(
    r"(?:(?:approximately|about|around|roughly|exactly|equal to|equals|simply|just|that|therefore|thus|indeed|now|"
    r"clearly|obviously|the (?:number|value|sum|total|result)(?: of [a-z ]{1,40})?(?: is)?|"
    r"is|be|a total of|of|:|=|≈|~)\s*)+",
    re.IGNORECASE,
)
_HEDGE = re.compile(r"(?:either|both|between|one of|any of|from|not|neither|never)\b", re.IGNORECASE)
_NOT_BUT = re.compile(r"\Anot\b[^.\n]{1,80}?\b(?:but(?:\s+rather)?|rather)\s+")
_ATOM = (
    r"(?:\d[\d,]*(?:\.\d+)?|\.\d+|\\[a-zA-Z]+|\\.|sqrt|pi|sin|cos|tan|log|ln|exp|infty|infinity|"
    r"[A-Za-z](?![A-Za-z])|[π∞√θ½⅓⅔¼¾²³°±])"
)
_EXPRESSION = re.compile(
    rf"[\s+\-−*/^=(){{}}\[\]|<>,;!_'·×÷%∪∩∈≤≥≠]*(?:{_ATOM}[\s+\-−*/^=(){{}}\[\]|<>,;.!_'·×÷%∪∩∈≤≥≠]*)+"
)
_FRACTION = rf"{PLAIN}(?:\s+\d+/\d+|\s?/\s?\d+(?:\.\d+)?)?"
_POWER = r"(?:e[-+]?\d+|\s?(?:×|x|\*|\\times)\s?10\s?\^\s?\{?-?\d+\}?)?"
_NUMBER = rf"(?<![\w.\\])[-−+]?[$€£¥]?[-−]?{_FRACTION}{_POWER}(?![\d])\s?(?:\\?%|percent\b)?"
_NUMBERS = re.compile(_NUMBER, re.IGNORECASE)
_JOIN = (
    r"(?:\s*[a-zA-Z°]{0,12}\s*"
    r"(?:,\s*(?:and|or|maybe|perhaps)?|;|/|\band\b|\bor\b|\band/or\b|\bto\b|\bthrough\b|[-–—~]|\|)"
    r"\s*(?:maybe|perhaps|possibly|even)?\s*)"
)
_LIST = re.compile(rf"{_NUMBER}(?:{_JOIN}{_NUMBER})+", re.IGNORECASE)
_SCALE = re.compile(r"\s*(?:hundred|thousand|million|billion|trillion)\b", re.IGNORECASE)
_LONGEST_SAID = 2_000
"""How many characters of a claim, or of the last line, are read. Our choice."""


def leading_value(said: str) -> str | None:
    """What a claim says first: an expression, a number, several of them, or words if there is neither."""
    said = said[:_LONGEST_SAID].strip().strip("*_`\"' ")
    said = said[found.end() :] if (found := _LEAD.match(said)) else said
    spans = _spans(said)
    if spans and spans[0][0] <= (2 if spans[0][2].strip() else 0):
        return _joined(said, spans)
    clause = _clause(_NOT_BUT.sub("", said))
    if _is_expression(clause):
        return clause.strip(" *_`")
    if spans and spans[0][0] < len(clause):
        return _joined(said, spans)
    return _first_number(clause) or clause.strip(" *_`\"'.,;:") or None


def last_value(text: str) -> str | None:
    """The last expression or number of a text that does not say which one is its answer."""
    line = next((line for line in reversed(text.splitlines()) if re.search(r"\d|\$.+\$|\\[(\[\]]", line)), "")
    window = text[max(0, text.rfind(line) - 2_000) :] if line.strip().startswith(("$$", "\\]")) else line
    window = window[-_LONGEST_SAID:]
    spans, numbers = _spans(window), list(_NUMBERS.finditer(window))
    if spans and (not numbers or numbers[-1].start() < spans[-1][1]):
        return _after_equals(spans[-1][2]) or None
    if not numbers:
        return None
    hedged = [found for found in _LIST.finditer(window) if found.end() >= numbers[-1].end() and _is_hedge(found[0])]
    last = hedged[-1] if hedged else numbers[-1]
    return _with_scale(window, last)


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


def _joined(said: str, spans: list[tuple[int, int, str]]) -> str:
    """The first piece of mathematics, with those that are listed with it, and a percent sign behind it."""
    values, end = [spans[0][2].strip()], spans[0][1]
    for start, stop, value in spans[1:]:
        if not re.fullmatch(r"\s*(?:,|;|/|,?\s*(?:and|or|to|and/or))\s*", said[end:start]):
            break
        values.append(value.strip())
        end = stop
    percent = re.match(r"\s?(?:\\?%|percent)", said[end:])
    return ", ".join(values) + ("%" if percent else "")


def _first_number(clause: str) -> str | None:
    first = _NUMBERS.search(clause)
    if first is None:
        return None
    listed = _LIST.match(clause, first.start())
    if _HEDGE.search(clause[: first.start()]) and listed is None:
        return clause.strip()
    return _with_scale(clause, listed or first)


def _with_scale(text: str, number: re.Match[str]) -> str:
    """The number, with a scale word such as `million` and with its unit, if one follows."""
    end = number.end()
    while scale := _SCALE.match(text, end):
        end = scale.end()
    return text[number.start() : end].strip()


def _after_equals(expression: str) -> str:
    r"""`3 + 4 = 7` ends with 7; `x = 1, y = 2` and inequalities stay whole."""
    text = expression.strip().rstrip(".,")
    parts = re.split(r"(?<![<>!\\])=", text)
    if len(parts) == 1 or re.search(r",(?!\d{3}(?!\d))", parts[-1]) or not parts[-1].strip():
        return text
    return parts[-1].strip() if len(parts) > 2 or re.search(r"\d", parts[-1]) else text
