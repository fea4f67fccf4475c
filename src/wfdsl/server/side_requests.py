"""Requests that chat programs send by themselves, such as for titles: they are not worth a workflow.

They are known by how their instructions begin, never by their limits: a request for little text may be a measurement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wfdsl.interpreter.context import Question

_HEAD: Final = 400
"""Characters from the beginning of a message in which the instructions are. Our choice."""
_SIGNS: Final[Mapping[str, str]] = {
    "a title": r"### Task:\s+Generate a concise, 3-5 word title"
    r"|(Please |Provide )?(generate )?a concise, 5-word-or-less title for the conversation"  # LibreChat
    r"|You are a (title generator|professional conversation summarizer)"  # opencode, LobeChat
    r"|You are an assistant skilled in conversation\. You need to summarize .{0,60} title",  # Cherry Studio
    "tags": r"### Task:\s+Generate 1-3 broad tags",
    "follow-up questions": r"### Task:\s+Suggest 3-5 relevant follow-up questions",
    "search queries": r"### Task:\s+Analyze the chat history to determine the necessity of generating search quer",
    "a completion of what is typed": r"### Task:\s+You are an autocompletion system",
    "an emoji": r"Your task is to reflect the speaker's likely facial expression through a fitting emoji",
}
"""How they begin; where no program is named, Open WebUI's."""
_PATTERNS: Final = {what: re.compile(sign, re.IGNORECASE | re.DOTALL) for what, sign in _SIGNS.items()}


def side_request(question: Question) -> str:
    """What a chat program asks for by itself; empty: a request like any other."""
    texts = [question] if isinstance(question, str) else [each["content"] for each in (question[0], question[-1])]
    heads = [text.lstrip()[:_HEAD] for text in texts]
    return next((what for what, sign in _PATTERNS.items() if any(map(sign.match, heads))), "")
