"""Suggestions for misspelled words: the "did you mean" of messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_SHORTEST = 2  # characters; our choice
_LONGEST = 60  # characters of a word that is looked up; our choice
_CANDIDATES = 200  # known words that it is compared with; our choice
_CLOSE = 0.6  # difflib's own default
_SHORTEST_BEGINNING = 3  # letters


class Suggestions:
    """Finds the closest word, a limited number of times: comparing is slow, and hundreds of hints are not read."""

    def __init__(self, limit: int = 100) -> None:
        self._left = limit

    def closest(self, word: str, known: Iterable[str]) -> str | None:
        """The known word that is most like this one, or begins with it; None if none is."""
        if self._left == 0 or not _SHORTEST <= len(word) <= _LONGEST:
            return None
        self._left -= 1
        written = {candidate.casefold(): candidate for candidate in islice(known, _CANDIDATES)}
        folded = word.casefold()
        if near := get_close_matches(folded, written, n=1, cutoff=_CLOSE):
            return written[near[0]]
        begun = [candidate for start, candidate in written.items() if start.startswith(folded)]
        return begun[0] if begun and len(word) >= _SHORTEST_BEGINNING else None

    def hint(self, word: str, known: Iterable[str]) -> str:
        """`did you mean ...?`, or nothing."""
        near = self.closest(word, known)
        return f"did you mean `{near}`?" if near else ""
