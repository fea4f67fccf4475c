"""Claims of prose: the clause in which a reply says its answer, and whether a clause says a certain text.

Where nothing is marked as the answer, a reply says it in its first clause, or after `but`, `so` and their kin; what
comes after a comma, a colon or `because` explains it. A clause says a text if it begins with it, or has it after a verb
such as `is`, and no other name or number could be meant.
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

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
_TURN = re.compile(
    r"(?:(?<=[.;,—]\s)|(?<=[.;,—]\sand\s)|^)"
    r"(?:therefore|thus|hence|so|(?:that|which) leaves)\b(?!\s+(?:that|called|far|much|many)\b)"
    r"|(?<!anything )\b(?:but|however|actually|in fact)\b"
    r"|其实|而是|因此|所以|但是|剩下|只有|実は|しかし|よって|したがって|つまり",
    re.IGNORECASE,
)
_COMMA = re.compile(r"[,;:](?=\s)(?!\s\d{4}\b)|[，；：]")
_REST = re.compile(
    _COMMA.pattern + r"|[。（(]|\s[—–-]{1,2}\s|—|\.\.\."
    r"|\b(?:because|since|which|where|whose|who|while|whereas|when|as(?=\s+(?:it|they|he|she|in)\b)"
    r"|i\.e\.)(?=\s)|ので|から(?!成)|因为|而(?!是)"
)
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


def claim(sentences: list[str]) -> str:
    """The clause of some sentences that says the answer; empty without one."""
    turned = next((at for at in range(len(sentences) - 1, 0, -1) if _TURN.match(sentences[at].lstrip(" *"))), 0)
    said = sentences[turned] if sentences else ""
    *_, end = 0, *(found.end() for found in _TURN.finditer(said))
    said = said[end:].lstrip(" ,，")
    if _OPENING.match(said) and (comma := _COMMA.search(said)) and not _OPENING.match(said, comma.end()):
        said = said[comma.end() :]
    rest = next((found for found in _REST.finditer(said) if said[: found.start()].strip(" *.\"'")), None)
    return (said[: rest.start()] if rest else said).strip()


def says(wanted: str, clause: str, known: frozenset[str] = frozenset()) -> bool:
    """Whether a clause says a text, and no other one. Known words, such as the question's, may be left out of it."""
    clause = _plain(clause)
    found = mention(wanted, clause, known)
    if found is None:
        return False
    before, after = clause[: found.start()], clause[found.end() :]
    unit = re.match(r"\s*([^\W\d]+)", after) if found[0][-1:].isdigit() else None
    if _ADDED.match(after) or _AWAY.search(before):
        return False
    if unit and unit[1].lower() not in known and not _OPENING.match(after) and not CJK.match(unit[1]):
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
    return re.sub(r"\\(?:text|mathrm)|[{}$_*\"“”]", "", normalize("NFKC", text).replace("−", "-")).strip()
