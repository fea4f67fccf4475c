"""Text answers: whether they are the gold text, regardless of case, articles, punctuation and spellings of numbers.

The whole answer has to be the gold text: a long answer that contains it somewhere is not right.
"""

from __future__ import annotations

import re
import unicodedata

from wfdsl.grading.quantities import read_number, same_number
from wfdsl.grading.verdict import Verdict

_ARTICLE = re.compile(r"\b(?:a|an|the)\s+(?=\w)")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-"})
_PUNCTUATION = re.compile(r"(?<!\d)[.,](?!\d)|(?<=\d)[.,](?!\d)|[^\w\s.,+\-*/%=<>°$€£^#@&]|_+|(?<=\w)-(?=[^\W\d])")
_APPOSITION = re.compile(r"(?<=\S)\s\((?:the|an?)\s[^()]*\)\Z")
"""What an answer says about itself: `Paris (the capital of France)`."""
_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")


def grade_text(gold: str, answer: str) -> Verdict:
    """Whether a text, as `final_answer` gives it, is the gold one."""
    if same_text(gold, answer):
        return Verdict("right", answer, f"it is {_short(gold)}")
    return Verdict("wrong", answer, f"{_short(answer)} is not {_short(gold)}")


def same_text(gold: str, answer: str) -> bool:
    """Whether two texts are the same after normalisation, or the same number with the same unit."""
    if answer.rstrip().endswith("?") and not gold.rstrip().endswith("?"):
        return False
    if "(" not in gold:
        answer = _APPOSITION.sub("", answer)
    one, other = normal_text(gold), normal_text(answer)
    if one == other:
        return bool(one) or gold.strip() == answer.strip() != ""
    return bool(one and other) and _same_quantity(gold, answer)


def normal_text(text: str) -> str:
    """A text without what does not matter."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()
    text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), text)
    text = _PUNCTUATION.sub(lambda found: "" if found[0] == "'" else " ", text)
    words = " ".join(text.split())
    return " ".join(_ARTICLE.sub("", words).split()) or words


def _same_quantity(gold: str, answer: str) -> bool:
    """A unit that the gold text has is part of the answer: leaving it out is wrong."""
    one = read_number(unicodedata.normalize("NFKC", gold).translate(_QUOTES))
    other = read_number(unicodedata.normalize("NFKC", answer).translate(_QUOTES))
    if one is None or other is None or one.is_percent != other.is_percent:
        return False
    if one.unit and one.unit.casefold() != other.unit.casefold():
        return False
    return same_number(one, other)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else line[:57] + "...")
