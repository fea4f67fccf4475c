r"""Answer markers in a reply: `\boxed{...}`, `<answer>` tags, lines `#### x`, and phrases such as "the answer is x".

The last marked answer is the final answer: a later one corrects an earlier one. Boxes next to each other, with nothing
but punctuation, `and` or `or` between them, are one answer with several values. So listing every possible value is not
a way to be right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

_OPENING = re.compile(r"\\f?box(?:ed)?\s*(?=\{)")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BETWEEN = re.compile(
    r"(?:[\s,;:.$()*/|]|\\[()\[\],;: ]|\\quad|\\text\{\s*(?:and|or)\s*\}|\b(?:and|or|also|maybe)\b)*", re.IGNORECASE
)
MOST_MARKED = 20
"""How many marked answers, from the last one backwards, are tried. Our choice."""
Form: TypeAlias = Literal["box", "tag", "line", "phrase"]
_TAG = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.IGNORECASE | re.DOTALL)
_HASHES = re.compile(r"^[ \t]*####[ \t]*(?!.*\banswer\b)(\S.*)$", re.IGNORECASE | re.MULTILINE)
_PHRASE = re.compile(
    r"""\banswers?\b
    (?:\s+(?:to|of|for|in|choice|option)\b[^.:=\n]{0,120}?|[\s,]+(?:therefore|then|thus|hence|here|now)\b,?)?
    [*_`"')\]]{0,4}\s*
    (?: [:=：] | \s*(?:is|are|was|equals|(?:must|should|would|will|has\s+to|can\s+only|could|might|may)\s+
        (?:therefore\s+|then\s+)?be)\b\s*:? | $(?=\n) )
    [*_`\s"']{0,12}(?:=\s*)?""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_CHECKING = re.compile(
    r"\b(?:check|checks|checking|verify|verifying|confirm|confirming|test|testing|validate)\s+(?:\w+\s+){0,3}\Z",
    re.IGNORECASE,
)
"""What follows `we may check our answer:` is a check, not an answer."""
_FIELD = re.compile(r'"([^"\n]+)"|[\s:]([^\s",}\]][^",}\]\n]*)(?=[,}\]\n])')
"""The value of `"answer": ...` in JSON, from the character before it."""
_DISPLAY = re.compile(r"\s*(?:\$\$.{1,2000}?\$\$|\\\[.{1,2000}?\\\])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Box:
    """Neighbouring boxes: their start and end in the text, and their values."""

    start: int
    end: int
    values: tuple[str, ...]

    @property
    def value(self) -> str:
        """The values as one answer."""
        return ", ".join(dict.fromkeys(self.values))


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    """A place where the text says what the answer is."""

    start: int
    text: str
    """The marked text; for a phrase, all that follows it up to the end of the line."""
    form: Form
    end: int = 0
    """Where a box ends."""


def marked_answers(text: str) -> list[MarkedAnswer]:
    """Every marked answer, the final one last."""
    return sorted(_all(text), key=lambda found: found.start)


def boxed_answers(text: str) -> list[Box]:
    """Every group of boxes, in order. A box that is not closed is left out."""
    groups: list[Box] = []
    for box in _single(text):
        before = groups[-1] if groups else None
        if before is not None and _BETWEEN.fullmatch(text, before.end, box.start):
            groups[-1] = Box(before.start, box.end, (*before.values, *box.values))
        else:
            groups.append(box)
    return groups


def _single(text: str) -> Iterator[Box]:
    """Each outermost box. Of a box that holds nothing but a box, the inner value."""
    closing = _matching_braces(text)
    end = 0
    for opening in _OPENING.finditer(text):
        if opening.start() < end or opening.end() not in closing:
            continue
        inner, brace = opening, opening.end()
        end = closing[brace] + 1
        while (deeper := _OPENING.match(text, brace + 1)) and closing.get(deeper.end()) == closing[brace] - 1:
            inner, brace = deeper, deeper.end()
        if value := text[inner.end() + 1 : closing[brace]].strip():
            yield Box(opening.start(), end, (value,))


def _matching_braces(text: str) -> dict[int, int]:
    """Where each brace that is opened is closed, in one pass. Escaped braces do not count."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for found in _BRACE.finditer(text):
        if found[0] == "{":
            opened.append(found.start())
        elif found[0] == "}" and opened:
            closing[opened.pop()] = found.start()
    return closing


def _all(text: str) -> Iterator[MarkedAnswer]:
    yield from (MarkedAnswer(box.start, box.value, "box", box.end) for box in boxed_answers(text))
    yield from (MarkedAnswer(tag.start(), tag[1].strip(), "tag") for tag in _TAG.finditer(text) if _is_plain(tag[1]))
    yield from (MarkedAnswer(line.start(), line[1].strip(), "line") for line in _HASHES.finditer(text))
    for phrase in _PHRASE.finditer(text):
        said = _said(text, phrase.end())
        if text[max(0, phrase.start() - 1) : phrase.start()] == '"' and (field := _FIELD.match(text, phrase.end() - 1)):
            yield MarkedAnswer(phrase.start(), (field[1] or field[2]).strip(), "tag")
            continue
        is_check = _CHECKING.search(text, max(0, phrase.start() - 60), phrase.start())
        if said.strip() and "\\boxed" not in said and not is_check:
            yield MarkedAnswer(phrase.start(), said, "phrase")


def _is_plain(tagged: str) -> bool:
    """Whether a tag holds no other marker, which would count instead."""
    return bool(tagged.strip()) and "\\boxed" not in tagged and not _PHRASE.search(tagged)


def _said(text: str, start: int) -> str:
    display = _DISPLAY.match(text, start)
    end = text.find("\n", max(start, display.end() if display else start))
    return text[start : end if end >= 0 else len(text)]
