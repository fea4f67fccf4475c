"""The table of how replies end, as the howto of pools has it."""

from __future__ import annotations

from wfdsl.workers.endings import ENDINGS

_MEANING = {
    "stop": "a reply; without any text it is asked for again",
    "length": "a reply that is cut, marked as such; without any text a failure, since it would end so again",
    "refusal": "a reply, marked as such",
    "filtered": "withheld: asked for again",
}


def endings() -> str:
    """Each finish with the words that mean it, and what they lead to."""
    rows = [f"| `{finish}` | {_codes(words)} | {_MEANING[finish]} |" for finish, words in ENDINGS.items()]
    rows.append("| `broken_off` | every other word, such as `error` or `abort` | half a reply: asked for again |")
    return "\n".join(["| finish | words of servers | what it is |", "|---|---|---|", *rows])


def _codes(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
