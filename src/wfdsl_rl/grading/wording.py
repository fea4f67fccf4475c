r"""Words around a value that deny it, change it or add another one: `not 5`, `half of 5`, `5 squared`, `5 or 6`.

What may stand next to a value is open: subjects and verbs before it, units and places after it. What turns it into
another value is a small part of the language: negations, arithmetic, comparisons and alternatives. A statement with one
of those is not an answer with that value.
"""

from __future__ import annotations

import re

_STRUCK = re.compile(r"~~[^~\n]+~~|<<[^<>\n]{1,200}>>|\\[bx]?cancel\s*\{(?:[^{}]|\{[^{}]*\})*\}")
_ASIDE = re.compile(r",[^,.;:\d]{1,30},")
_TURN = re.compile(
    r"[,;:=\n]|[.!?](?=\s)|\s[—–-]\s|\b(?:rather|instead|so|therefore|thus|hence|then)\b|(?<!thing )(?<!all )\bbut\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|never|neither|nor|cannot|without|doubt\w*|deny|denies|unlikely|impossible|except|besides|"
    r"(?:any|every)thing but|all but|other than|different from|far from|unlike|wrong|incorrect|false)\b|"
    r"n['’]t\b|[¬≠]|!=|\\(?:neg|lnot|neq?)\b|"
    r"\b(?:if|whether|unless|suppose|assume)\s+(?:that\s+)?(?:the\s+)?(?:\w+\s+)?\Z",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    rf"{_TURN.pattern}|[.!?](?=\Z)|(?<=[A-Za-z][)\]])\s|(?=\bnot\s[(*]{{0,3}}[A-Z]\b)|\b(?:because|since|as|which)\b",
    re.IGNORECASE,
)
_COPULA = re.compile(r"\b(?:is|are|was|were|be|equals|has|have|had)\b", re.IGNORECASE)
_OPERATOR = re.compile(
    r"(?:\b(?:half|thirds?|quarters?|(?:four|fif|six|eigh|nin|ten)ths?|twice|thrice|double|triple|square|root|cubed?|squared|"
    r"power|reciprocal|inverse|opposite|log|ln|logarithm|sine|cosine|tangent|multiple|divisor|divisible|factors?|times|"
    r"plus|percent|fraction|complement|factorial)|%)(?:\s+(?:of|the|by|to))*\s*\Z",
    re.IGNORECASE,
)
_COMPARISON = re.compile(
    r"(?:\b(?:than|least|most|over|under|above|below|beyond|before|after|past|within|almost|nearly|near|between|following|"
    r"preceding|exceeds|minus|negative|(?<!rounds )(?<!rounded )(?:up|close|next) to)|(?<![<>])[<>≤≥≠])\s*\Z",
    re.IGNORECASE,
)
_NUMERAL = r"(?:[\d$\\]|(?:one|two|three|four|five|six|seven|eight|nine|ten|half|itself)\b)"
_CHANGE = re.compile(
    r"\A[\s*_]*(?:squared|cubed|doubled|tripled|halved|factorial|point\s|and\s+(?:a|one|three)\s|n?or\b|hundredths?\b|"
    rf"(?:(?:more|less|fewer)\s+)?than\s+{_NUMERAL}|(?:\\?%\s*)?of\s+[\d$\\]|[+*/^×÷]\s?[\d$\\]|!\s*[=+\d])|"
    r"\b(?:plus|minus|modulo|mod|divided\s+by|multiplied\s+by|(?:in\s+)?base\s+\w|to\s+the\s+(?:power|\w+\s+power)|unless|"
    rf"otherwise|n?or\s+(?:more|fewer|less|so|maybe|perhaps|possibly|{_NUMERAL})|(?:times|choose)\s+{_NUMERAL}|"
    r"over\s+\d|(?:percent|half|third|%)\s+of\s+[\d$\\])(?!\w)",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|as|so|which|where|given|making|meaning|when|with|not|instead\s+of|rather\s+than)\b",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    r"\b(?:or|but|if|unless|otherwise|else|maybe|perhaps|possibly|alternatively|could|might|may|no|wait|actually|sorry|"
    r"rather|though|although|depending)\b",
    re.IGNORECASE,
)
_CHANGE_ENDS = re.compile(
    r"[,;:()\[\]—–\n?]|(?<!\d)\.(?=\s|\Z)|\b(?:because|since|which|so|given|making|meaning|when|where)\b", re.IGNORECASE
)
_RETRACTION = re.compile(
    r"(?:\A|[.!?…,;—–\n-])\s{0,9}[*_]{0,2}"
    r"(?P<word>no|wait|or|actually|sorry|rather|correction|hmm|scratch that|I mean)\b[\s,.:—–-]{1,9}"
    r"(?:(?:no|wait|maybe|perhaps|I mean)\b[\s,.:]{1,5})?"
    r"(?:(?:it|that)\s?(?:['’]s|is)\s{1,5}|make that\s)?[*_]{0,2}(?=\S)",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[*_\s\"'”’)]*\?")


def without_struck(text: str) -> str:
    r"""A text without what is struck through, `~~5~~` and `\cancel{5}`, and what is for a calculator, `<<2+3=5>>`."""
    return _STRUCK.sub(" ", text)


def is_denied(before: str) -> bool:
    """Whether the words of a sentence before a value deny it: `it isn't`, `anything but`, `if it were`."""
    return bool(_NEGATION.search(_last_clause(before)))


def is_changed_before(before: str) -> bool:
    """Whether the words before a value make another one of it: `half of`, `at least`."""
    clause = _last_clause(before)
    copulas = list(_COPULA.finditer(clause))
    near = clause[copulas[-1].end() :] if copulas else clause
    near = " ".join(near.split()[-4:])
    return bool(_COMPARISON.search(near) or _OPERATOR.search(near))


def is_changed_after(after: str) -> bool:
    """Whether the words right after a value make another one of it: `squared`, `plus one`, `or more`."""
    return bool(_CHANGE.search(_CHANGE_ENDS.split(after, maxsplit=1)[0]))


def alternative(after: str) -> str:
    """What follows a value in its sentence with `or`, `but`, `unless`, `if`; empty without such a word.

    A reason ends the search: `5, because 6 or 7 would be too many`.
    """
    reason = _REASON.search(after)
    said = after[: reason.start()] if reason else after
    found = _ALTERNATIVE.search(said)
    return said[found.end() :] if found else ""


def retractions(text: str) -> list[re.Match[str]]:
    """Where a text takes back what it said: `No, ...`, `Wait, it is ...`. The group `word` is the word."""
    return list(_RETRACTION.finditer(text))


def is_asked(after: str) -> bool:
    """Whether a value ends a question."""
    return bool(_QUESTION.match(after))


def _last_clause(before: str) -> str:
    text = _ASIDE.sub(" ", before[-300:])
    turns = list(_TURN.finditer(text))
    return text[turns[-1].end() :] if turns else text


def without_denied(text: str, letters: re.Pattern[str]) -> str:
    """A text with `?` for the letters in its clauses that deny or ask; places stay the same."""
    parts, start = [], 0
    for turn in _CLAUSE_END.finditer(text):
        parts += [_hidden(text[start : turn.start()], turn[0], letters), turn[0]]
        start = turn.end()
    return "".join((*parts, _hidden(text[start:], "", letters)))


def _hidden(clause: str, end: str, letters: re.Pattern[str]) -> str:
    return letters.sub("?", clause) if end.startswith("?") or _NEGATION.search(clause) else clause
