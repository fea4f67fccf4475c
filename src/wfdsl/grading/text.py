"""Text answers: whether they are the gold text, regardless of case, accents, articles, punctuation and spelled numbers.

The whole answer has to be the gold text. Of a clause of prose, which only claims an answer, it is enough that it says
the text: it begins with it, or has it after a verb such as `is`, and no other name or number could be meant.
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

from wfdsl.grading.normal_forms import Number, read
from wfdsl.grading.verdict import Verdict

_PUNCTUATION = re.compile(r"(?<!\d)[.,](?!\d)|(?<=\d)[.,](?!\d)|[^\w\s.,+\-*/%=<>°$€£^#@&]|_+|(?<=\w)-(?=[^\W\d])")
_ELSE = re.compile(r"\b(?:or|and|not|no|but|so|wait)\b|n['’]t\b|[?？或]|和(?=.)|不是|ない", re.IGNORECASE)
_TITLE = re.compile(
    r"(?:(?:republic|state|kingdom|city) of|sir|dr|mrs?|ms|prof(?:essor)?|president|king|queen|lord|saint|st)\s+"
)
_INITIALS = re.compile(r"\b[^\W\d_](?:\.\s?[^\W\d_])+\b(?![^\W\d_])\.?")
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    rf"(?i)(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? )?(?:{_MONTHS})[a-z]*\.?(?: \d{{1,2}}(?:st|nd|rd|th)?)?,? \d{{4}}"
    r"|\d{4}[-年]\d{1,2}[-月]\d{1,2}日?"
)
_SIGNS = str.maketrans("’‘–—−", "''---")
_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_WORD = re.compile(r"(?:(?<!\w)-(?=\d))?[^\W_]+")
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|by|called|named|as|means|remains|being|choose|pick|say)\b|['’]s\b|[为是は]"
)
_AWAY = re.compile(
    r"(?i)\b(?:to|near|behind|under|above|below|before|after|without|like|resembl\w*|against|beside|beyond|more|less|than"
    r"|of|replac\w+|older|larger|unlike|used to be|was once)\W*(?:the\W+)?\Z|[非]\Z"
)
_ADDED = re.compile(r"\W*\b(?:or|and)\b|[-'’.,]?\d|(?:['’]s)?\s+(?!BC\b)[A-Z]|\s*%|\s*\b(?:BC|million|billion)\b")
"""What makes a text one of several, or a part of a name or number."""
USUAL = frozenset(re.findall(
    r"[\w']+",
    "the a an is are was were it its of in on at by to for from this that these they there has have as so must be it's "
    "correct answer right option did that's they're he she we i you here his her their our my all only just choice yes "
    "one most and such definitely clearly many american british english french german italian",
))  # fmt: skip
"""Words that name nothing."""


def grade_text(gold: str, answer: str, question: str = "", *, is_claim: bool = False) -> Verdict:
    """Whether a text is the gold one, alone or before an addition such as `, Japan`; or a claim that says it."""
    if same_text(gold, answer):
        return Verdict("right", answer, f"it is {gold!r}", rule="same text")
    leads = [] if _ELSE.search(answer) else [re.split(r"[,，(（]|\s(?=of\b)", answer, maxsplit=1)[0]]
    said = (same_text(gold, one) for one in [*_DATE.findall(answer), *leads])
    if (is_claim and says(gold, answer, words_of(question))) or any(said):
        return Verdict("right", answer, f"{answer!r} says {gold!r}", rule="says the text")
    return Verdict("wrong", answer, f"{answer!r} is not {gold!r}", rule="same text")


def same_text(gold: str, answer: str) -> bool:
    """Whether two texts are the same after normalisation, the same date, or the same number with the same unit."""
    if answer.rstrip().endswith("?") and not gold.rstrip().endswith("?"):
        return False
    if "(" not in gold:
        answer = re.sub(r"(?<=\S)\s?\([^()]*\)\Z", "", answer)  # `Paris (the capital of France)`
    one, other = normal_text(gold), normal_text(answer)
    if one == other:
        return bool(one) or gold.strip() == answer.strip() != ""
    day, given = _date(gold), _date(answer)
    if day or (given and re.fullmatch(r"\d{4}年?", gold.strip())):
        return given[: len(day) or 1] == (day or (int(gold.strip()[:4]),))
    return bool(one and other) and (_same_name(gold, one, other) or _same_quantity(gold, answer))


def normal_text(text: str) -> str:
    """A text without what does not matter."""
    text = re.sub(r"_\{?(\d)\}?", r"\1", text.replace("$", "") if "\\" in text else text)
    text = re.sub(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}", r"\1", text)
    text = normalize("NFKD", re.sub(r"\bMt\b\.?", "Mount", text)).translate(_SIGNS).casefold()
    text = _INITIALS.sub(lambda found: re.sub(r"[.\s]", "", found[0]), text)
    text = normalize("NFKC", re.sub(r"[\u0300-\u036f]", "", text))  # without accents
    words = " ".join(_PUNCTUATION.sub(lambda found: "" if found[0] == "'" else " ", text).split())
    return " ".join(re.sub(r"\b(?:a|an|the)\s+(?=\w)", "", words).split()) or words


def _same_name(gold: str, one: str, other: str) -> bool:
    """Whether two names differ in a title, middle names or initials only, a month in its end, a word in its plural."""
    wanted, given = one.split(), _TITLE.sub("", other).split()
    if wanted == given or (len(one) > 3 and one == other.removesuffix("s")):
        return True
    if len(wanted) < 2 or not 2 <= len(given) <= 5 or not gold[:1].isupper() or wanted[-1] != given[-1]:
        return False
    pairs = zip(wanted[:-1], given[:-1], strict=False)
    is_same = all(a == b or (1 in (len(a), len(b)) and a[0] == b[0]) for a, b in pairs)
    return is_same or given[0] == "".join(word[0] for word in wanted[:-1])


def _date(text: str) -> tuple[int, ...]:
    """Year, month and day; nothing where a text is no date."""
    plain = " ".join(text.split()).strip(" .").lower()
    parts = re.findall(rf"\d+|{_MONTHS}", plain) if _DATE.fullmatch(plain) else []
    if len(parts) != 3:
        return ()
    if plain[:4].isdigit():
        return tuple(map(int, parts))
    month = next(part for part in parts if part in _MONTHS)
    return int(parts[2]), 1 + _MONTHS.split("|").index(month), int(parts[1 - parts.index(month)])


def _same_quantity(gold: str, answer: str) -> bool:
    """A unit that the gold text has is part of the answer: leaving it out is wrong."""
    one, other = read(gold), read(answer)
    if not isinstance(one, Number) or not isinstance(other, Number) or one.value != other.value:
        return False
    return one.unit == other.unit or (not one.unit and other.unit != "%")


def says(wanted: str, clause: str, known: frozenset[str] = frozenset()) -> bool:
    """Whether a clause says a text, and no other one. Known words, such as the question's, name no other one."""
    clause = _plain(clause)
    found = mention(wanted, clause)
    if found is None:
        return False
    before, after = clause[: found.start()], clause[found.end() :]
    if _ADDED.match(after) or _AWAY.search(before):
        return False
    names = re.findall(r"[^\W_]+(?:['’]\w+)?", _VERB.split(before)[-1])
    return not any((name[0].isupper() or name[0].isdigit()) and name.lower() not in known | USUAL for name in names)


def mention(wanted: str, clause: str) -> re.Match[str] | None:
    """Where a clause has the words of a text."""
    words = [word for word in _WORD.findall(_plain(wanted)) if word.lower() not in ("the", "a", "an")]
    phrase = r"\W+".join(map(re.escape, words))
    if not phrase or (len(phrase) == 1 and _CJK.match(phrase)):  # one sign is a part of many words
        return None
    is_start = r"(?<![a-zA-Z\d])(?<!(?<!\w)-(?=\d))"  # where no minus sign of a number stands before
    return re.search(rf"{is_start}{phrase}(?![a-zA-Z\d])", _plain(clause), re.IGNORECASE)


@lru_cache(maxsize=64)
def words_of(question: str) -> frozenset[str]:
    """The words of a question without its options, and their plurals."""
    asked = re.split(r"\n\s*\(?A[.):]", question)[0].lower()
    words = re.findall(r"[^\W_]+", asked)
    return frozenset({*words, *(f"{word}s" for word in words), *_CJK.findall(asked)})


def _plain(text: str) -> str:
    return re.sub(r"\\(?:text|mathrm)|[{}$_*\"“”]", "", normalize("NFKC", text).replace("−", "-")).strip()
