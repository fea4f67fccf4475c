"""Run configuration: `RunConfig`, which holds every option of a run, and `RunRequest`, which is what a run was asked.

The journal keeps the request of each run, so that the run can be resumed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from wfdsl.interpreter.budget import UNLIMITED, Budget
from wfdsl.interpreter.context import QuestionFor, messages_for
from wfdsl.interpreter.record import PlainQuestion, PlainWorkflow, adapter_of
from wfdsl.interpreter.tools import Tools
from wfdsl.protocols import Message
from wfdsl.settings import Table, changed, option, options_of, to_table

LONGEST_WAIT_S = 600.0
"""A server may ask for a wait of weeks; a run fails with a message rather than wait that long. Our choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(Table):
    """How a workflow is run: the table [run] of a TOML file, and the options of `wfdsl.run`."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    concurrency: int | None = option(None, "most calls in flight at once", default_text="the workers' own limits", ge=1)
    seed: int | None = option(
        None, "makes workers that honour a seed repeatable; each step gets its own from it", "--seed"
    )
    timeout_s: float | None = option(None, "most seconds for the whole run", default_text="no limit", gt=0)
    step_timeout_s: float | None = option(
        None,
        "most seconds for a step, from when it may start; its fallback worker has as many again",
        default_text="the workers' own limits",
        gt=0,
    )
    longest_wait_s: float = option(
        LONGEST_WAIT_S,
        "longest wait for another attempt in seconds, whatever a server asks for and however long it refuses",
        gt=0,
    )
    question_for: QuestionFor = option("all", "which steps are shown the question")
    run_dead_steps: bool = option(False, "also run steps that cannot change the answer")
    max_depth: int = option(1, "levels of nested Conductor nodes", ge=0)
    ask_again: bool = option(False, "resume although kept replies do not fit the pool or the options", "--ask-again")

    def manifest(self) -> dict[str, Any]:
        """The options of a run as plain values, without those that a subclass adds; None is left out."""
        return {name: value for name in _NAMES if (value := getattr(self, name)) is not None}


DEFAULT = RunConfig()
_NAMES = tuple(found.name for found in options_of(RunConfig))


def split_options(options: Mapping[str, Any]) -> tuple[RunConfig, dict[str, Any]]:
    """The configuration that is in what `wfdsl.run` takes by name, and what else is in it (budget, journal, ...).

    Raises:
        UsageError: a value does not fit.
    """
    changes = {name: value for name, value in options.items() if name in _NAMES}
    others = {name: value for name, value in options.items() if name not in _NAMES and name != "config"}
    return changed(options.get("config") or DEFAULT, changes), others


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a run was asked: enough to do it again."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    workflow: PlainWorkflow
    question: PlainQuestion
    config: RunConfig = DEFAULT
    budget: Budget = UNLIMITED
    names: tuple[str, ...] | None = None
    """Display names of the steps."""
    previous: tuple[str, str] | None = None
    """The final (subtask, response) of the round before."""
    pool: str = ""
    """The pool's name."""
    sample_id: str = ""
    """Distinguishes the calls of this run from the same calls of others."""
    answer_settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling settings of the call that gives the answer."""
    tools: Tools | None = None
    """The caller's tools."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Where the caller found the workflow and the pool, in the caller's own words."""

    @property
    def title(self) -> str:
        """The question in one line."""
        question = self.question
        text = question if isinstance(question, str) else question[-1]["content"] if question else ""
        return " ".join(text.split())[:200].encode(errors="replace").decode()

    def messages_of(self, step: int, responses: Mapping[int, str] | Sequence[str]) -> tuple[Message, ...]:
        """What a step is shown, given the responses of those that it sees."""
        shown, for_ = self.question, self.config.question_for
        return messages_for(self.workflow, step, responses, shown, question_for=for_, previous=self.previous)

    def changes(self, now: RunRequest) -> list[str]:
        """What another request asks for otherwise, by name, of what decides on the calls of a run and on its answer.

        Limits of money and time may change, and so may names and where workflow and pool were found. Workers are
        compared call by call, where their replies are looked for.
        """
        before, after = _identity(self), _identity(now)
        return [name for name in before if before[name] != after[name]]

    def settings(self) -> dict[str, Any]:
        """What the run's record says about how it was started."""
        return {
            **self.config.manifest(),
            "budget": to_table(self.budget),
            "previous": self.previous,
            "sample_id": self.sample_id,
            **({"answer_settings": dict(self.answer_settings)} if self.answer_settings else {}),
            "origin": dict(self.origin),
        }

    def to_json(self) -> str:
        """The request as JSON text."""
        return json.dumps(self._plain(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> RunRequest:
        """The inverse of `to_json`.

        Raises:
            ValueError: it is damaged.
        """
        found: RunRequest = adapter_of(RunRequest).validate_python(json.loads(text))
        return found

    def _plain(self) -> dict[str, Any]:
        found: dict[str, Any] = adapter_of(RunRequest).dump_python(self, mode="json", exclude_none=True, warnings=False)
        found.get("tools", {}).pop("choice", None)  # it may change when a run is continued
        return found


_ASKED = ("workflow", "question", "previous", "sample_id", "answer_settings", "tools")
_OPTIONS = ("seed", "question_for", "run_dead_steps", "max_depth")


def _identity(request: RunRequest) -> dict[str, Any]:
    plain = request._plain()
    return {**{name: plain.get(name) for name in _ASKED}, **{name: plain["config"].get(name) for name in _OPTIONS}}
