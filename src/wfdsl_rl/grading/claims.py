r"""Where a reply says what its answer is: boxes, `<answer>` tags, `#### x`, "the answer is x", headings.

Each of these is a *claim*. The claim that ends last is the final answer: a later one corrects an earlier one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from wfdsl_rl.grading.boxes import boxes

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CLAIMS = 20
"""How many claims, from the last one on, are looked at until one says something. Our choice."""
Form: TypeAlias = Literal["box", "tag", "line", "phrase"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A place where the text says what the answer is."""

    start: int
    text: str
    """What is claimed; of a phrase, all that follows it up to the end of the line."""
    form: Form


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
"""What follows `we may check our answer:` is a check, not a claim."""
_DISPLAY = re.compile(r"\s*(?:\$\$.{1,2000}?\$\$|\\\[.{1,2000}?\\\])", re.DOTALL)


def claims(text: str) -> list[Claim]:
    """Every claim, the final one last."""
    return sorted(_all(text), key=lambda claim: claim.start)


def _all(text: str) -> Iterator[Claim]:
    yield from (Claim(box.start, box.value, "box") for box in boxes(text))
    yield from (Claim(tag.start(), tag[1].strip(), "tag") for tag in _TAG.finditer(text) if _is_plain(tag[1]))
    yield from (Claim(line.start(), line[1].strip(), "line") for line in _HASHES.finditer(text))
    for phrase in _PHRASE.finditer(text):
        said = _said(text, phrase.end())
        is_check = _CHECKING.search(text, max(0, phrase.start() - 60), phrase.start())
        if said.strip() and "\\boxed" not in said and not is_check:
            yield Claim(phrase.start(), said, "phrase")


def _is_plain(tagged: str) -> bool:
    """A tag that holds a claim of its own leaves it to that claim."""
    return bool(tagged.strip()) and "\\boxed" not in tagged and not _PHRASE.search(tagged)


def _said(text: str, start: int) -> str:
    display = _DISPLAY.match(text, start)
    end = text.find("\n", max(start, display.end() if display else start))
    return text[start : end if end >= 0 else len(text)]
