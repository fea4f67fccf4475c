"""The caller's tools: what the workers of a run may call, while the caller runs the tools itself.

A step whose worker calls a tool is suspended. Its run ends with the status `suspended` once every running step is done
or suspended, and is continued with the results (`Journal.add_results`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.protocols import Message, ToolCall

MAX_TOOL_ROUNDS = 50
"""Our choice."""
MOST_LEVELS = 200
"""How deep definitions may be nested: far deeper than schemas are, and less than any reader of JSON. Our choice."""
ToolSteps: TypeAlias = Literal["answer", "all"]


class IssuedCall(NamedTuple):
    """A tool call as the journal keeps it."""

    id: str
    """Made by the journal, of 96 random bits, so that no one can guess it."""
    result: str | None
    """None: not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools of a run."""

    definitions: tuple[Mapping[str, Any], ...]
    """What there is, in the shape of OpenAI's chat API: `{"type": "function", "function": {"name": ...}}`."""
    steps: ToolSteps = "answer"
    """Which steps may call them: the one that gives the answer, or all."""
    max_rounds: int = MAX_TOOL_ROUNDS
    """How often a step may call tools; then it has to answer."""
    parallel: bool | None = None
    """Whether a worker may call several at once; None: the provider's default."""
    choice: str | Mapping[str, Any] | None = None
    """`tool_choice`, for the calls that are made now: it may change when a run is continued."""

    def __post_init__(self) -> None:
        """Check it.

        Raises:
            UsageError: there are no tools, or a value cannot be used.
        """
        if not self.definitions or not all(isinstance(each, Mapping) for each in self.definitions):
            raise UsageError("definitions must hold at least one tool, each as an object")
        if _levels(self.definitions) > MOST_LEVELS:
            raise UsageError(f"definitions must not be nested deeper than {MOST_LEVELS} levels")
        if self.steps not in ("answer", "all") or self.max_rounds < 0:
            raise UsageError('steps must be "answer" or "all", and max_rounds at least 0')

    def settings(self, rounds: int) -> dict[str, Any]:
        """The settings of a call of a worker that has called tools this many times."""
        found = {
            "tools": [dict(each) for each in self.definitions],
            "tool_choice": self.choice if rounds < self.max_rounds else "none",
            "parallel_tool_calls": self.parallel,
        }
        return {name: value for name, value in found.items() if value is not None}


def _levels(value: object) -> int:
    """How deep objects and lists are nested."""
    level, found = [value], 0
    while level := [each for each in level if isinstance(each, Mapping | list | tuple)]:
        found += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, Mapping) else each)]
        if found > MOST_LEVELS:
            break
    return found


def pending_calls(run: Run) -> tuple[ToolCall, ...]:
    """The tool calls that a suspended run waits for, step by step."""
    return tuple(ToolCall(**call) for said in _last_words(run) for call in said["tool_calls"])


def _last_words(run: Run) -> list[Message]:
    found: list[Message] = []
    for step in run.steps:
        if step.status == "suspended":
            found += _last_words(step.nested[-1]) if step.nested else [step.messages[-1]]
    return found


def suspended_answer(run: Run) -> StepRecord | None:
    """The step that gives a run's answer, if it is suspended; inside a Conductor, that of its last round."""
    last = run.steps[-1]
    if last.status != "suspended":
        return None
    return suspended_answer(last.nested[-1]) if last.nested else last
