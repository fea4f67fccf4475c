"""What a worker finds in its messages: the question, what it sees of the others, and what it is told to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wfdsl.protocols import WorkerFailure
from wfdsl_rl.gym.world.families import FAMILIES
from wfdsl_rl.gym.world.known import known
from wfdsl_rl.gym.world.roles import role_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.protocols import Message
    from wfdsl_rl.gym.world.known import Known
    from wfdsl_rl.gym.world.presets import Preset

_GAP = "\n\n"
"""Stands between the question and the first subtask; no question of the gym has an empty line in it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The messages of a call, understood."""

    question: Known
    seen: tuple[str, ...]
    """The replies in view, in order."""
    subtask: str
    asked_chars: int
    """Characters of the question and of all subtasks in view."""


def scene_of(messages: Sequence[Message], preset: Preset) -> Scene:
    """The scene that these messages make.

    Raises:
        WorkerFailure: there is no question of the gym in them.
    """
    users = [message["content"] for message in messages if message["role"] == "user"]
    for content in users:
        text, _, subtask = content.partition(_GAP)
        question = known(preset, text.strip())
        if question is not None:
            own = subtask if content is users[-1] else users[-1]
            seen = tuple(message["content"] for message in messages if message["role"] == "assistant")
            return Scene(question, seen, _innermost(own), sum(map(len, users)))
    raise WorkerFailure(_not_ours(users), retryable=False)


def _innermost(subtask: str) -> str:
    """Of a Conductor node's subtask with another one behind it, the latter, if it says what to do."""
    last = subtask.rpartition(_GAP)[2]
    return last if role_of(last) != "none" else subtask


def _not_ours(users: list[str]) -> str:
    asked = users[0].partition(_GAP)[0] if users else ""
    shown = asked if len(asked) <= 80 else f"{asked[:77]}..."
    return (
        f"simulated workers know the questions of the gym only, and this is none: {shown!r}. "
        f"wfdsl_rl.gym.make and `--tasks gym/paper7` give some (families: {', '.join(FAMILIES)})"
    )
