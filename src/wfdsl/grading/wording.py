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
    r"\b(?:not|never|neither|nor|nobody|no one|hardly|scarcely|barely|cannot|no way|no chance|"
    r"rules? out|ruled out|doubt\w*|deny|denies|"
    r"unlikely|impossible|except|besides|"
    r"(?:any|every)thing but|all but|other than|different from|far from|unlike|wrong|incorrect|false)\b|"
    r"n['’]t\b|[¬≠]|!=|\\(?:neg|lnot|neq?)\b|"
    r"\b(?:if|whether|unless|suppose|assume)\s+(?:that\s+)?(?:the\s+)?(?:\w+\s+)?\Z",
    re.IGNORECASE,
)
_DOUBLE = re.compile(r"(?:\bnot|n['’]t)\s+(?=(?:wrong|incorrect|false|fail)\b)(?:\w+)", re.IGNORECASE)
_OPINION = re.compile(
    r"\b(?:no way|no chance|think|believe|say|sure|certain|doubt\w*|claim|guess|expect|agree|true|correct|the case|"
    r"unlikely|impossible|wrong|"
    r"incorrect|false|den(?:y|ies))\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    rf"{_TURN.pattern}|[.!?](?=\Z)|(?<=[A-Za-z][)\]}}])\s|(?=\bnot\s[(*]{{0,3}}[A-Z]\b)|\b(?:because|since|as|which)\b|"
    r"(?<!not\s)(?<!n['’]t\s)(?<!never\s)(?=\\f?box|<answer)",
    re.IGNORECASE,
)
_VERB = re.compile(r"\b(?:is|are|was|were|equals)\b", re.IGNORECASE)
_COPULA = re.compile(r"\b(?:is|are|was|were|be|equals|has|have|had)\b", re.IGNORECASE)
_OPERATOR = re.compile(
    r"(?:\b(?:half|thirds?|quarters?|(?:four|fif|six|eigh|nin|ten)ths?|twice|thrice|double|triple|square|root|cubed?|squared|"
    r"power|negation|reciprocal|inverse|opposite|log|ln|logarithm|sine|cosine|tangent|multiple|divisor|divisible|factors?|times|"
    r"plus|percent|fraction|complement|factorial)|%)(?:\s+(?:of|the|by|to))*\s*\Z",
    re.IGNORECASE,
)
_COMPARISON = re.compile(
    r"(?:\b(?:than|least|most|over|under|above|below|beyond|before|after|past|within|almost|nearly|near|between|following|like|"
    r"shy of|short of|"
    r"preceding|exceeds|minus|negative|(?<!rounds )(?<!rounded )(?:up|close|next) to)|(?<![<>])[<>≤≥≠])\s*\Z",
    re.IGNORECASE,
)
_NUMERAL = r"(?:[\d$\\]|(?:one|two|three|four|five|six|seven|eight|nine|ten|half|itself)\b)"
_CHANGE = re.compile(
    r"\A[\s*_]*(?:squared|cubed|doubled|tripled|halved|inverted|negated|reversed|factorial|less\s|(?:ten|hundred|thousand|million|billion)ths\b|(?:st|nd|rd|th)\s+\w|fails\b|"
    r"(?:short\s+of|away\s+from|per)\s+\d|\w+ed\s+(?:by|to)\b|point\s|"
    r"(?:is|are|was|were|can|could|does|would|must|should)(?:n['’]t|\s?(?:not|never|wrong|incorrect|false|too)\b)|and\s+(?:a|one|three)\s|n?or\b|hundredths?\b|"
    rf"(?:(?:more|less|fewer)\s+)?than\s+{_NUMERAL}|(?:\\?%\s*)?of\s+[\d$\\]|[+*/^×÷]\s?[\d$\\]|!\s*[=+\d])|"
    r"\b(?:plus|minus|modulo|mod|divided\s+by|multiplied\s+by|(?:in\s+)?base\s+\w|to\s+the\s+(?:power|\w+\s+power)|unless|"
    rf"otherwise|n?or\s+(?:more|fewer|less|so|maybe|perhaps|possibly|{_NUMERAL})|(?:times|choose)\s+{_NUMERAL}|"
    r"(?:percent|half|third|%)\s+of\s+[\d$\\])(?!\w)",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|as|so|which|where|given|making|meaning|with|not|instead\s+of|rather\s+than)\b",
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
_NOT_VALUE = re.compile(r"(?:\bnot|n['’]t(?: be)?)\s+\S{1,40}", re.IGNORECASE)
_REMARK = re.compile(r"[(\[][^()\[\]\n]{0,200}[)\]]")
_PLACED = re.compile(
    r"(?:\b(?:in|for|at|on|every|each|per|from|of|after|before|during|within|among|by|to|than|the|step|steps|question|"
    r"part|equation|eq|chapter|problem|figure|top|first|last|next|all|these|those)\.?|[-=<>≤≥~^*/+(]|\\\w+)\s*[$(\\]*\Z",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[*_\s\"'”’)]*\?")


def without_struck(text: str) -> str:
    r"""A text without what is struck through, `~~5~~` and `\cancel{5}`, and what is for a calculator, `<<2+3=5>>`."""
    return _STRUCK.sub(" ", text)


def is_denied(before: str) -> bool:
    """Whether the words of a sentence before a value deny it: `it isn't`, `anything but`, `if it were`."""
    return _denied_until(clause := _last_clause(before)) == len(clause)


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
    """What follows a value in its sentence after `or`, `but`, `unless` and the like; empty without such a word.

    A reason ends the search: `5, because 6 or 7 would be too many`.
    """
    said = _without_reason(after)
    found = _ALTERNATIVE.search(said)
    return said[found.end() :] if found else ""


def has_other(after: str, value: re.Pattern[str]) -> bool:
    """Whether a statement has another value after it: `5, but it could be 6`, `5 when n is even and 6 when it is odd`.

    Values with a place of their own are none of it: `5 in 3 days`, `5, not 6`, `5 (2 + 3)`, `5 because 6 is too many`.
    """
    if value.search(_NOT_VALUE.sub(" ", alternative(after))):
        return True
    said = _REMARK.sub(" ", _without_reason(after))
    return any(not _PLACED.search(said, 0, found.start()) for found in value.finditer(said))


def _without_reason(after: str) -> str:
    reason = _REASON.search(after)
    return after[: reason.start()] if reason else after


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
    until = len(clause) if end.startswith("?") else _denied_until(clause)
    return letters.sub("?", clause[:until]) + clause[until:] if until is not None else clause


def _denied_until(clause: str) -> int | None:
    """Where a denial in a clause ends: at a verb after it, `those that do not fit are 5`; `I don't think it is 5`."""
    clause = _DOUBLE.sub(lambda found: " " * len(found[0]), clause)
    negation = None
    for negation in _NEGATION.finditer(clause):  # noqa: B007  (the last one counts)
        pass
    if negation is None:
        return None
    verb = _VERB.search(clause, negation.end())
    if verb is None or _OPINION.search(clause, negation.start(), verb.start()):
        return len(clause)
    return verb.start()
