"""Text answers: whether they are the gold text, regardless of case, accents, articles, punctuation and spelled numbers.

The whole answer has to be the gold text. Of prose, which only claims an answer, it is enough that it mentions the text
and does not begin with another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from unicodedata import normalize

from wfdsl.grading.in_words import in_figures
from wfdsl.grading.normal_forms import Number, read
from wfdsl.grading.verdict import Verdict

_PUNCTUATION = re.compile(r"(?<!\d)[.,](?!\d)|(?<=\d)[.,](?!\d)|[^\w\s.,+\-*/%=<>°$€£^#@&]|_+|(?<=\w)-(?=[^\W\d])")
_ELSE = re.compile(r"\b(?:or|and|not|no|but|so|wait)\b|n['’]t\b|[?？或]|和(?=.)|不是|ない", re.IGNORECASE)
_TITLE = re.compile(
    r"(?:(?:republic|state|kingdom|city) of|sir|dr|mrs?|ms|madame|prof(?:essor)?|president|king|queen|lord|saint|st)\s+"
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_ORDINAL = r"(\d{1,2})(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b(?:{_ORDINAL}(?: of)? )?({'|'.join(_MONTHS)})[a-z]*\.?(?: {_ORDINAL})?,?(?: in)?(?: the year)? (\d{{4}})\b"
    r"|(\d{4})[-年]0?(\d{1,2})[-月]0?(\d{1,2})日?",
    re.IGNORECASE,
)
_AFFIX = re.compile("^(?:公元|西元|西暦)|(?:です|だ|である)$|(?:特別市|特别市|市|年|氏|先生|さん|元素)$")
_GENERIC = frozenset(
    ["river", "lake", "mount", "mountain", "city", "ocean", "desert", "gas", "island", "sea", "element", "all"]
)
_PERSON = frozenset(["who", "whose", "whom", "person", "谁", "誰", "哪位"])
_SIGNS = str.maketrans("’‘–—−Łł", "''---Ll")
_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_WORD = re.compile(r"(?:(?<!\w)-(?=\d))?[^\W_]+")
_TERM = re.compile(r"(?<!['’])[a-zA-Z\u00c0-\u024f\d-]+|[\u3040-\u30ff\u4e00-\u9fff]")
_AWAY = re.compile(r"\b(?:or|without|than|before|after|ahead of|unlike|used to be)\W*(?:the\W+)?\Z|非\Z", re.IGNORECASE)
_ADDED = re.compile(
    r"\W*(?:\b(?:or|and)\b|还是|或|それとも)|[-'’.,]?\d|['’]s\b|\s+(?!(?:BC|River|Lake|Sea|City|Mount|Desert|Ocean|Island)s?\b)[A-Z]|\s*%|\s*\b(?:BC|million|billion)\b"
)
"""What makes a text one of several, or a part of something else."""
USUAL = frozenset(re.findall(
    r"[\w']+",
    "the a an is are was were it its of in on at by to for from this that these they there has have as so must be it's "
    "correct answer right option did that's they're he she we i you here his her their our my all only just choice yes "
    "one most and such bc ad known called named definitely clearly many american british english french german italian",
))  # fmt: skip
"""Words that name nothing."""


def grade_text(
    gold: str, answer: str, question: str = "", *, is_claim: bool = False, is_only_gold: bool = True
) -> Verdict:
    """Whether a text is the gold one, alone or before an addition such as `, Japan`; or a claim that says it.

    A person's name may be longer, unless there are other gold texts, which have the longer one.
    """
    known = words_of(question) - (frozenset() if is_only_gold else _PERSON)
    first = answer.split("\n", 1)[0]
    if same_text(gold, first, known):
        return Verdict("right", answer, f"it is {gold!r}", rule="same text")
    leads = [first[: end.start()] for end in re.finditer(r"[,，(（:]|\s(?=of\b)", first)]
    leads += re.findall(r"[(（](?!(?:as|in|of|by|from) )([^()（）]+)[)）]$", first)
    leads = [] if _ELSE.search(first) else leads
    said = (same_text(gold, one, known) for one in leads)
    if (is_claim and says(gold, answer, known)) or any(said):
        return Verdict("right", answer, f"{answer!r} says {gold!r}", rule="says the text")
    return Verdict("wrong", answer, f"{answer!r} is not {gold!r}", rule="same text")


def same_text(gold: str, answer: str, known: frozenset[str] = frozenset()) -> bool:
    """Whether two texts are the same after normalisation, the same name or date, or the same number with its unit.

    Known words, such as the question's, may be added or left out.
    """
    if answer.rstrip().endswith("?") and not gold.rstrip().endswith("?"):
        return False
    one, other = normal_text(gold), normal_text(answer)
    if one == other:
        return bool(one) or gold.strip() == answer.strip() != ""
    if re.fullmatch(r"\d{4}年?", gold.strip()) and re.match(rf"{gold.strip()[:4]} \d{{1,2}} ", _dated(answer) + " "):
        return True
    return bool(one and other) and (_same_name(gold, answer, known) or _same_quantity(gold, answer))


@lru_cache(maxsize=256)
def normal_text(text: str) -> str:
    """A text without what does not matter."""
    text = re.sub(r"_\{?(\d)\}?", r"\1", text.replace("$", "") if "\\" in text else text)
    text = re.sub(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}", r"\1", text)
    text = normalize("NFKD", re.sub(r"\bMt\b\.?", "Mount", _dated(text))).translate(_SIGNS).casefold()
    text = normalize("NFKC", re.sub(r"[\u0300-\u036f]", "", text))  # without accents
    text = in_figures(text)
    text = re.sub(r"^\*+|\*+$|(?<=[\u3040-\u9fff]) (?=[\u3040-\u9fff])", "", text.strip())
    words = " ".join(_PUNCTUATION.sub(lambda found: "" if found[0] == "'" else " ", text).split())
    return " ".join(re.sub(r"\b(?:a|an|the)\s+(?=\w)", "", words).split()) or words


def _same_name(gold: str, answer: str, known: frozenset[str]) -> bool:
    """Whether two names differ in titles, first or middle names, initials, a plural or words that name nothing."""
    one, other = normal_text(gold), normal_text(answer)
    if (len(one) > 3 and one == other.removesuffix("s")) or _AFFIX.sub("", one) == _AFFIX.sub("", other):
        return True
    empty = {word for word in known | _GENERIC if not word.isdigit()}
    wanted, given = ([word for word in text.split() if word not in empty] for text in (one, _TITLE.sub("", other)))
    if not wanted or not given or _ELSE.search(answer) or "," in answer:
        return False
    is_name = known & _PERSON or (len(wanted) > 1 and gold[:1].isupper() and not re.search(r"\d", one))
    short, long = sorted((wanted, given), key=len)
    is_first = given[0][:4] in (wanted[0][:4], wanted[0][0])
    is_part = len(long) < 4 and (long[-len(short) :] == short or (len(wanted) == 1 and given[0] == wanted[0]))
    return wanted == given or bool(is_name and (is_part or (wanted[-1] == given[-1] and is_first)))


def _dated(text: str) -> str:
    """A text whose dates are years, months and days."""

    def ordered(found: re.Match[str]) -> str:
        first, month, second, *parts = found.groups()
        year = [parts[0], str(1 + _MONTHS.index(month.lower())), first or second or ""] if month else parts[1:]
        return " ".join(year).strip()

    return _DATE.sub(ordered, text)


def _same_quantity(gold: str, answer: str) -> bool:
    """A unit that the gold text has is part of the answer: leaving it out is wrong."""
    one, other = read(gold), read(answer)
    if not isinstance(one, Number) or not isinstance(other, Number) or one.value != other.value:
        return False
    return one.unit == other.unit or (not one.unit and other.unit != "%")


def says(wanted: str, claim: str, known: frozenset[str] = frozenset()) -> bool:
    """Whether a line of a claim mentions a text, not as one of several or a part of something else.

    A first line that is hardly more than another name, one that is not known, says that instead.
    """
    lines = list(map(_plain, claim.split("\n")))
    found = ((line, at) for line in lines for at in islice(_mentions(wanted, line, known), 9))
    said = [line for line, at in found if not (_ADDED.match(line[at.end() :]) or _AWAY.search(line[: at.start()]))]
    new = [word for word in _TERM.findall(lines[0]) if word.lower() not in known | USUAL]
    names = [word for word in new if not word.islower()]
    is_name = len(new) <= 2 * len(names) and len(new) <= (6 if _CJK.search(lines[0]) else 3)
    is_other = new and is_name and not re.match(r"(?i:in|on|by) \d", lines[0])
    return bool(said) and (said[0] == lines[0] or not is_other)


def stems(text: str) -> frozenset[str]:
    """The words of a text without their endings, and the pairs of signs of Chinese and Japanese; `x - 1` is a word."""
    plain = normal_text(re.sub(r"(?<=\w) ([-+*/^]) (?=\w)", r"\1", _plain(text)))
    words = re.sub(r"[\u3040-\u30ff\u4e00-\u9fff]+|(?<=\d)[°%]c?|[=≈:]", r" \g<0> ", plain).split()
    signs = (word[at : at + 2] for word in words if _CJK.match(word) for at in range(max(len(word) - 1, 1)))
    ended = (re.sub(r"(?<=[a-z]{3})(?:ings?|ed|es|s|e)$", "", word) for word in words if not _CJK.match(word))
    return frozenset([*signs, *ended])


def _mentions(wanted: str, clause: str, known: frozenset[str]) -> Iterator[re.Match[str]]:
    """Where a clause has the words of a text, or a part of a name: the last word, or the last two signs of four."""
    words = [word for word in _WORD.findall(_plain(wanted)) if word.lower() not in ("the", "a", "an")]
    forms = [r"\W+".join(map(re.escape, words))]
    is_name = len(words) > 1 and wanted[:1].isupper() and words[-1][:1].isupper() and not re.search(r"\d", wanted)
    if is_name and len(words[-1]) > 3 and words[-1].lower() not in known:
        forms.append(re.escape(words[-1]))
    if known & _PERSON and re.fullmatch("[\u4e00-\u9fff]{4}", wanted):
        forms.append(wanted[2:])
    for form in filter(None, forms):
        yield from re.finditer(rf"(?<![a-zA-Z\d]){form}(?:(?<=[a-z]{{3}})s)?(?![a-zA-Z\d])", clause, re.IGNORECASE)


@lru_cache(maxsize=64)
def words_of(question: str) -> frozenset[str]:
    """The words of a question without its options, and their plurals."""
    asked = re.split(r"\n\s*\(?A[.):]", question)[0].lower()
    words = re.findall(r"[^\W_]+", asked)
    return frozenset({*words, *(f"{word}s" for word in words), *_CJK.findall(asked)})


@lru_cache(maxsize=256)
def _plain(text: str) -> str:
    plain = re.sub(r"[\u0300-\u036f]", "", normalize("NFKD", in_figures(_dated(text)))).translate(_SIGNS)
    return re.sub(r"\\(?:text|mathrm)|[{}$_*\"“”]", "", normalize("NFKC", plain)).strip()
