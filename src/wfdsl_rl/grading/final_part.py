"""The part of a reply in which the final answer stands: thinking left out, only the end of very long texts.

What a model thinks is no answer. So a reply that ends inside its thinking has none.
"""

from __future__ import annotations

import re

LONGEST_TAIL = 20_000
"""How many characters at the end of a reply are searched. Our choice: an answer further up is not a final one."""
_THINKING = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)


def final_part(text: str) -> str:
    """What was said after the thinking: all of it if there was none, nothing if the thinking never ended."""
    last = None
    for last in _THINKING.finditer(text):  # noqa: B007  (the last match is what counts)
        pass
    if last is None:
        return text
    return text[last.end() :] if last[1] else ""


def tail(text: str) -> str:
    """The end of a text, from the start of a line where it had to be cut."""
    if len(text) <= LONGEST_TAIL:
        return text
    cut = text[-LONGEST_TAIL:]
    return cut[cut.find("\n") + 1 :] if "\n" in cut else cut
