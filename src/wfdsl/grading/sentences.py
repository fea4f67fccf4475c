"""The sentences, lines and boxes of a reply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

_END = re.compile(
    r"\n+|(?<=[。!?;])|(?<=[\w)\]}$%°²³'\"”*!?][.!?;])[)\"'*]*\s+(?=\S)|(?<=\w);\s+"
    r"|,?\s+(?=(?:and\s+so|but\s+the)\b)|\s*(?:→|⇒|=>|⟹)\s*"
    r"|(?<=[a-z])(?<!answer)(?<!ans)(?<!result)(?<!solution)(?<!\bis):\s+(?=[-−+(√$\\\d]+[^A-Z]*$)"
    r"|,\s+(?=(?:so|thus|hence|therefore|then|but)\b(?!\s+(?:that|far|much|many)\b))|[,,](?=所以|因此|故)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"\$\$.{0,600}?\$\$|\$[^$\n]{0,600}\$|\\\[.{0,600}?\\\]|\\\(.{0,600}?\\\)", re.DOTALL)
_BOX = re.compile(r"\\f?box(?:ed)?\s*(?=\{)|\\boxed\s+([\w-]\S*)")
_ADDED = re.compile(
    r"\}?\s{0,3}(?:[-+*/^]|\\(?:pi|times|cdot|sqrt|frac|pm)(?![a-z])|or\b\s*(?!\$?\\boxed)|%"
    r"|(?:is|was)(?:n['’]t|\s+(?:not|wrong|incorrect)))"
)
_DENIED = re.compile(r"(?:(?:\bnot|n['’]t|≠|\\neq?|≈)[\s$({]*|(?:[-+/]|(?<!\*)\*|\\times|\\cdot)\s*)$", re.IGNORECASE)
"""Before a box: what denies it, or makes it a part of the answer."""
_JOINED = re.compile(r"[\s,;.$]*(?:and|or|\\text\{\s*(?:and|or)\s*\}|,)?[\s,;.$]*")
_INITIAL = re.compile(
    r"(?:[::]|\A)[\s*(]*[A-Z]\.\Z|(?:[::][\s*]*|[A-Z]\.\s?|[A-Z][a-z]+\s|\b(?:Sir|Dr|Mr|Mrs|Mt|St)(?=\.))[A-Z]?\.\Z"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a reply states as its answer."""

    text: str
    """The sentence, line or box."""
    value: str
    """The value in it: an expression, letters joined by commas, or words; "" where what is marked as one is none."""
    is_claim: bool = False
    """Whether it is a clause of prose, which claims the answer without a word for it."""


def sentences_of(text: str) -> Iterator[str]:
    """Sentences and lines. Mathematics and boxes stay whole."""
    whole = _SPAN.sub(lambda found: f"${'x' * (len(found[0]) - 2)}$", text)
    for first, last, _ in _boxes(text):
        whole = f"{whole[:first]}\\{'x' * (last - first - 1)}{whole[last:]}"
    start = 0
    for end, after in (*(found.span() for found in _END.finditer(whole)), (len(text), len(text))):
        if end == len(text) or not _INITIAL.search(text[max(start, end - 20) : end]):
            if sentence := text[start:end].strip():
                yield sentence
            start = after


def _boxes(text: str) -> Iterator[tuple[int, int, str | None]]:
    """Start, end and content of each box; None as content of one that is cut off."""
    end = 0
    for found in _BOX.finditer(text):
        if found.start() < end:
            continue
        if found[1]:
            end = found.end()
            yield found.start(), end, found[1].rstrip(".$,")
            continue
        depths = accumulate((letter == "{") - (letter == "}") for letter in text[found.end() :])
        length = next((at for at, depth in enumerate(depths) if not depth), None)
        end = len(text) if length is None else found.end() + length + 1
        yield found.start(), end, None if length is None else text[found.end() + 1 : end - 1]


def boxed(sentence: str) -> Statement | None:
    """The last box of a sentence, or all that are joined by `and`, `or` and commas; "" of one that does not count."""
    boxes = list(_boxes(sentence))
    if not boxes:
        return None
    start, end, content = boxes[-1]
    before, after = sentence[:start], sentence[end : end + 40]
    if content is None or not content.strip() or _ADDED.match(after) or _DENIED.search(before):
        return Statement(sentence, "")
    values, at = [content], start
    for earlier in reversed(boxes[:-1]):
        if earlier[2] is None or not _JOINED.fullmatch(sentence[earlier[1] : at]):
            break
        values.insert(0, earlier[2])
        at = earlier[0]
    return Statement(sentence, ", ".join(dict.fromkeys(value.strip() for value in values)))
