"""Text answers: whether they are the gold text, regardless of case, accents, articles, punctuation and spelled numbers.

The whole answer has to be the gold text: a long answer that contains it somewhere is not right.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from textwrap import shorten

from wfdsl.grading.normal_forms import Number, clean, read
from wfdsl.grading.verdict import Verdict

CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_WORD = re.compile(r"[^\W_]+")
_SIGNED = re.compile(r"(?:(?<!\w)-(?=\d))?[^\W_]+")
_POSITIVE = r"(?<!(?<!\w)-(?=\d))"
"""Where no minus sign of a number stands before."""
STRUCTURE = frozenset(
    {"the", "a", "an", "is", "are", "was", "were", "it", "its", "of", "in", "on"}
    | {"at", "by", "to", "for", "from", "this", "that", "these", "they", "there", "has", "have"}
    | {"as", "so", "must", "be", "correct", "answer", "right", "option", "did"}
)
"""Words that say nothing about an option."""
_OPENING = re.compile(
    r"\s*(?:in|at|on|of|for|by|with|from|among|after|before|during|(?:even )?though|although|while|whereas|if|since"
    r"|because|when|unlike|besides|as|according|well|sure|okay|ok|great|good question)\b",
    re.IGNORECASE,
)
_COPULA = re.compile(
    r"(?:\b(?:is|are|was|were|be|been|by|called|named|known as|means|remains|being|choose|pick|say)|['’]s)"
    r"\W+(?:(?:[a-z]+|[A-Z]\w+(?:an|ish|ese|ch))\W+){0,4}\Z|(?:为|是|は)\W*\Z"
)
_AWAY = re.compile(
    r"\b(?:to|near|behind|under|above|below|before|after|without|like|resembl\w*|against|beside|beyond|more|less|than|of"
    r"|replac\w+|older|larger|unlike|used to be|was once)\W*(?:the\W+)?\Z|[非]\Z",
    re.IGNORECASE,
)
_ADDED = re.compile(r"\W*\b(?:or|and)\b|[-'’.,]?\d|(?:['’]s)?\s+(?!BC\b)[A-Z]|\s*%|\s*\b(?:BC|million|billion)\b")
"""What makes a text one of several, or a part of a name or number."""
_USUAL = STRUCTURE | {"it's", "that's", "they're", "he", "she", "we", "i", "you", "here", "his", "her", "their", "our"}
_USUAL |= {"my", "all", "only", "just", "choice", "yes", "one", "most", "and", "such", "definitely", "clearly", "many"}
_ARTICLE = re.compile(r"\b(?:a|an|the)\s+(?=\w)")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-"})
_PUNCTUATION = re.compile(r"(?<!\d)[.,](?!\d)|(?<=\d)[.,](?!\d)|[^\w\s.,+\-*/%=<>°$€£^#@&]|_+|(?<=\w)-(?=[^\W\d])")
_APPOSITION = re.compile(r"(?<=\S)\s?\([^()]*\)\Z")
"""What an answer says about itself: `Paris (the capital of France)`."""
_ELSE = re.compile(r"\b(?:or|and|not|no|but|so|wait)\b|n['’]t\b|[?？或]|和(?=.)|不是|ない", re.IGNORECASE)
_TITLE = re.compile(
    r"(?:(?:republic|state|kingdom|city) of|sir|dr|mr|mrs|ms|prof|professor|president|king|queen|saint|st|lord)\s+"
)
_INITIALS = re.compile(r"\b[^\W\d_](?:\.\s?[^\W\d_])+\b(?![^\W\d_])\.?")
_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"(?P<m>{'|'.join(_MONTHS)})[a-z]*\.?"
_DATES = [
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_MONTH} (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})",
        rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH},? (?P<y>\d{{4}})",
        r"(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})",
        r"(?P<y>\d{4})年(?P<m>\d{1,2})月(?P<d>\d{1,2})日",
    )
]


def grade_text(gold: str, answer: str, question: str = "", *, is_claim: bool = False) -> Verdict:
    """Whether a text is the gold one, alone or before an addition such as `, Japan`; or a claim that says it."""
    if same_text(gold, answer):
        return Verdict("right", answer, f"it is {_short(gold)}", rule="same text")
    if (is_claim and says(gold, answer, words_of(question))) or any(same_text(gold, said) for said in _said(answer)):
        return Verdict("right", answer, f"{_short(answer)} says {_short(gold)}", rule="says the text")
    return Verdict("wrong", answer, f"{_short(answer)} is not {_short(gold)}", rule="same text")


def _said(answer: str) -> list[str]:
    """The dates in an answer, and what comes before an addition, where nothing is denied and nothing else is named."""
    lead = re.split(r"[,，(（]|\s(?=of\b)", answer, maxsplit=1)[0]
    dates = [found[0] for form in _DATES for found in form.finditer(answer)]
    return dates + ([] if _ELSE.search(answer) else [lead])


def same_text(gold: str, answer: str) -> bool:
    """Whether two texts are the same after normalisation, the same date, or the same number with the same unit."""
    if answer.rstrip().endswith("?") and not gold.rstrip().endswith("?"):
        return False
    if "(" not in gold:
        answer = _APPOSITION.sub("", answer)
    one, other = normal_text(gold), normal_text(answer)
    if one == other:
        return bool(one) or gold.strip() == answer.strip() != ""
    if day := _date(gold):
        return day == _date(answer)
    if re.fullmatch(r"\d{4}年?", gold.strip()) and (day := _date(answer)):
        return day[0] == int(gold.strip()[:4])
    return bool(one and other) and (_same_name(gold, one, other) or _same_quantity(gold, answer))


def normal_text(text: str) -> str:
    """A text without what does not matter."""
    text = _COMMAND.sub(r"\1", text.replace("$", "") if "\\" in text else text)
    text = re.sub(r"_\{?(\d)\}?", r"\1", text)
    text = re.sub(r"\bMt\b\.?", "Mount", text)
    text = unicodedata.normalize("NFKD", text).translate(_QUOTES).casefold()
    text = _INITIALS.sub(lambda found: re.sub(r"[.\s]", "", found[0]), text)
    text = "".join(letter for letter in text if not 0x300 <= ord(letter) < 0x370)
    text = unicodedata.normalize("NFKC", text)
    text = _PUNCTUATION.sub(lambda found: "" if found[0] == "'" else " ", text)
    words = " ".join(text.split())
    return " ".join(_ARTICLE.sub("", words).split()) or words


def _same_name(gold: str, one: str, other: str) -> bool:
    """Whether two names differ in a title, middle names or initials only, a month in its end, a word in its plural."""
    wanted, given = one.split(), _TITLE.sub("", other).split()
    if wanted == given or (len(one) > 3 and one == other.removesuffix("s")):
        return True
    if len(wanted) < 2 or not 2 <= len(given) <= 5 or not gold[:1].isupper() or wanted[-1] != given[-1]:
        return False
    is_initials = given[0] == "".join(word[0] for word in wanted[:-1])
    is_middle = min(len(wanted), len(given)) == 2 or all(map(_same_given, wanted[1:-1], given[1:-1]))
    return is_initials or (is_middle and _same_given(wanted[0], given[0]))


def _same_given(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])


def _date(text: str) -> tuple[int, int, int] | None:
    plain = " ".join(text.split()).strip(" .")
    found = next((match for form in _DATES if (match := form.fullmatch(plain))), None)
    if found is None:
        return None
    month = found["m"].lower()
    return int(found["y"]), int(month) if month.isdigit() else 1 + _MONTHS.index(month), int(found["d"])


def _same_quantity(gold: str, answer: str) -> bool:
    """A unit that the gold text has is part of the answer: leaving it out is wrong."""
    one, other = read(clean(gold)), read(clean(answer))
    if not (isinstance(one, Number) and isinstance(other, Number)) or one.is_percent != other.is_percent:
        return False
    return one.value == other.value and (not one.unit or one.unit.casefold() == other.unit.casefold())


def _short(text: str) -> str:
    return repr(shorten(text, 60, placeholder="..."))


def says(wanted: str, clause: str, known: frozenset[str] = frozenset()) -> bool:
    """Whether a clause says a text, and no other one. Known words, such as the question's, may be left out of it."""
    clause = _plain(clause)
    found = mention(wanted, clause, known)
    if found is None:
        return False
    before, after = clause[: found.start()], clause[found.end() :]
    if _ADDED.match(after) or _AWAY.search(before):
        return False
    names = re.findall(r"[^\W_]+(?:['’]\w+)?", before)
    is_rival = any((name[0].isupper() or name[0].isdigit()) and name.lower() not in known | _USUAL for name in names)
    return bool(_COPULA.search(before)) or not is_rival


def mention(wanted: str, clause: str, known: frozenset[str] = frozenset()) -> re.Match[str] | None:
    """Where a clause has the words of a text, all of them or those that are not known."""
    words = [word for word in _SIGNED.findall(_plain(wanted)) if word.lower() not in ("the", "a", "an")]
    for chosen in (words, [word for word in words if word.lower() not in known]):
        phrase = r"\W+".join(map(re.escape, chosen))
        if len(phrase) > 1 or not CJK.match(phrase or "是"):  # one sign is a part of many words
            found = re.search(rf"(?<![a-zA-Z\d]){_POSITIVE}{phrase}(?![a-zA-Z\d])", _plain(clause), re.IGNORECASE)
            if found is not None:
                return found
    return None


@lru_cache(maxsize=64)
def words_of(question: str) -> frozenset[str]:
    """The words of a question without its options, and their plurals."""
    asked = re.split(r"\n\s*\(?A[.):]", question)[0].lower()
    words = _WORD.findall(asked)
    return frozenset({*words, *(f"{word}s" for word in words), *CJK.findall(asked)})


def _plain(text: str) -> str:
    return re.sub(r"\\(?:text|mathrm)|[{}$_*\"“”]", "", unicodedata.normalize("NFKC", text).replace("−", "-")).strip()
