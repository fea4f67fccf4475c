"""Words of a text and of a question, for comparing what is said with what was asked."""

from __future__ import annotations

import re
from itertools import pairwise
from unicodedata import normalize

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
STRUCTURE = frozenset(
    {"the", "a", "an", "is", "are", "was", "were", "it", "its", "of", "in", "on"}
    | {"at", "by", "to", "for", "from", "this", "that", "these", "they", "there", "has", "have"}
    | {"as", "so", "must", "be", "correct", "answer", "right", "option", "did"}
)
"""Words that say nothing about an option."""


def words_of(question: str) -> frozenset[str]:
    """The words of a question without its options, and their plurals."""
    asked = re.split(r"\n\s*\(?A[.):]", question)[0].lower()
    words = _WORD.findall(asked)
    return frozenset({*words, *(f"{word}s" for word in words), *CJK.findall(asked)})


def bare(text: str) -> str:
    """The words of a text, without case and punctuation."""
    return " ".join(_WORD.findall(normalize("NFKC", re.sub(r"[²³]", " ", text)).casefold()))


def stems(text: str) -> frozenset[str]:
    """The words of a text without the ending of a plural; of Chinese and Japanese, pairs of characters."""
    plain = bare(text)
    pairs = {a + b for run in re.findall(r"[\u3040-\u30ff\u4e00-\u9fff]+", plain) for a, b in pairwise(run)}
    return frozenset({word.removesuffix("s") for word in plain.split() if not CJK.search(word)} | pairs)


def leftover(text: str, question: str) -> str:
    """What a sentence says beyond the words of the question: from the first new word to the last."""
    known = words_of(question) | STRUCTURE
    new = [found for found in re.finditer(r"[^\W_]+(?:['’][^\W_]+)?", text) if found[0].casefold() not in known]
    return text[new[0].start() : new[-1].end()] if new else ""
