"""Which of many questions a prompt holds, found in time that hardly grows with their number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

_HEAD: Final = 16
"""Characters by which a question is looked up. Our choice: most questions of a data set begin differently."""


class Questions:
    """Questions by how they begin: a search looks at each place of a prompt once, not for each question."""

    def __init__(self, questions: Iterable[str]) -> None:
        self._short: list[str] = []
        self._by_head: defaultdict[str, list[str]] = defaultdict(list)
        for each in questions:
            (self._short if len(each) < _HEAD else self._by_head[each[:_HEAD]]).append(each)

    def held(self, prompt: str) -> list[str]:
        """The questions that a prompt holds, each once."""
        found = dict.fromkeys(each for each in self._short if each in prompt)
        begun = self._by_head.keys()
        for place in range(len(prompt) - _HEAD + 1):
            head = prompt[place : place + _HEAD]
            if head in begun:
                found.update((each, None) for each in self._by_head[head] if prompt.startswith(each, place))
        return list(found)
