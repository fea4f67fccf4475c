"""What is said in words, in signs and figures: numbers, fractions, times, roots and intervals."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

SCALES = {"k": 10**3, "dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
SCALES |= {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8, "億": 10**8}
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_NAMES = (_WORDS + " seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety").split()
_NUMERALS = {word: at if at < 20 else 10 * at - 180 for at, word in enumerate(_NAMES)}
_NUMERALS |= {sign: at for at, sign in enumerate("〇一二三四五六七八九")} | {"两": 2, "零": 0}
_PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8}
_PARTS |= {"tenth": 10}
_WORD = rf"(?:{'|'.join((*reversed(_NAMES), 'hundred', 'thousand', 'million'))})"
_COUNT = "[〇零一二两三四五六七八九十百千万]{1,12}"
_FIGURES = re.compile(
    rf"""(?P<minus>\b(?:negative|minus)\s+|マイナス|负|負の)?
    (?:(?P<under>{_COUNT}|\d{{1,9}})分[之の](?P<over>{_COUNT}|\d{{1,9}})|(?P<digits>\d+)|(?P<signs>{_COUNT})
    |\b(?P<words>(?:an?\s+hundred|{_WORD})(?:(?:(?:(?<=hundred)|(?<=thousand))\s+and\s+|[\s-]+){_WORD}){{0,8}})\b
    (?:(?P<plus>\s+and\s+an?)?[\s-]+(?P<part>{"|".join(_PARTS)})s?\b)?)""",
    re.IGNORECASE | re.VERBOSE,
)


def compiled(*spellings: tuple[str, Any]) -> list[tuple[re.Pattern[str], Any]]:
    """Forms, each with what `sub` puts in its place."""
    return [(re.compile(form), spelled) for form, spelled in spellings]


HOURS = (
    r"(?<!\d)(\d{1,4})\s*(?:hours?|hrs?|h|時間|小时)(?: and)?\s*(\d{1,4})\s*(?:minutes?|mins?|分钟?)(?![a-z])",
    lambda found: f"{int(found[1]) + Fraction(int(found[2]), 60)} hours",
)
_IN_WORDS = compiled(
    HOURS,
    (
        rf"(?i)\b(\d{{1,3}}|{_WORD})[ -](?:in|out of)[ -](\d{{1,3}}|{_WORD})(?=\s*(?:[,.;)]|$|chance))",
        lambda found: in_figures(f"{found[1]}/{found[2]}"),
    ),
    (
        rf"(?i)(?:(?<!\d)(\d+|{_WORD})(?: times)? )?(?:the )?(?:square )?root (?:of )?(\d+|{_WORD})\b",
        lambda found: in_figures(f"{found[1] or ''} √ {found[2]}"),
    ),
    (r"(?:(?<=\d)|\ball (?:real )?(?:numbers|x)),? (?:except|but not|other than) (?:[a-z] = )?(?=[-−]?\d)", ", x ≠ "),
    (
        r"(午後|下午|晚上)?(?:午前|上午|早上)?(\d{1,2})\s?[点时時]\s?(\d{1,2})\s?分",
        lambda m: f"{m[2]}:{m[3]}{' pm' * bool(m[1])}",
    ),
    (r"(?<![a-zA-Z\\])([b-hj-z])(?:\s+(?:is|equals|must be)\s+|\s?(?:が|は|等于|为|是)\s?)(?=[-−+]?\d)", r"\1 = "),
)


@lru_cache(maxsize=256)
def in_signs(text: str) -> str:
    """A sentence whose roots, times and intervals in words are in signs, and its long numbers in figures."""
    text = in_figures(text, only_long=True)
    for form, spelled in _IN_WORDS:
        text = form.sub(spelled, text)
    return text


def in_figures(text: str, *, only_long: bool = False) -> str:
    """A text whose numbers in words are in figures, `206` for `two hundred and six`; or only those of several words."""

    def figures(found: re.Match[str]) -> str:
        minus, under, over, digits, signs, words, plus, part = found.groups()
        if digits or (only_long and not (minus or over or part or re.search(r"\w\W|[〇-龥]{2}", signs or words))):
            return f"-{digits}" if minus and digits else found[0]
        value = Fraction(_count(over or signs or words.lower()), (under and _count(under)) or 1)
        size = _PARTS[part.lower()] if part else 1
        return f"{'-' if minus else ''}{value + Fraction(1, size) if plus else value / size}"

    return _FIGURES.sub(figures, text)


def _count(text: str) -> int:
    words = re.findall(r"[a-z]+|\d+|[^\W\d_a-z]", text)
    if len(words) > 1 and all(_NUMERALS.get(word, 10) < 10 for word in words):  # a year
        return int("".join(str(_NUMERALS[word]) for word in words))
    value = part = 0
    for word in words:
        if size := SCALES.get(word):
            value, part = max(value + part, 1) * size if size > value else value + max(part, 1) * size, 0
        else:
            number = int(word) if word.isdigit() else _NUMERALS.get(word, 0)
            part = (100 * part if min(part, number) > 9 else part) + number  # `nineteen eighty-nine`
    return value + part
