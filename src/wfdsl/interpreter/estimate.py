"""Estimate of a run: what it would ask and could cost at most, as far as that is known before anything is asked.

A response that does not exist yet is shown as a placeholder and counted, where later steps read it, as the longest
reply of its worker. Everything else that is read is counted at its UTF-8 bytes. Retries and nested runs are not
included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from wfdsl.graph import graph_of
from wfdsl.interpreter.context import Question, QuestionFor, messages_for
from wfdsl.interpreter.record import total_usd
from wfdsl.interpreter.worker_profile import WorkerProfile, profile_of
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Message, Usage, WorkerPool


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step that would be run."""

    step: int
    worker: int
    worker_name: str
    messages: tuple[Message, ...]
    """What it would be sent; responses to come are `{response of step N}`."""
    input_tokens: int
    """At most."""
    output_tokens: int | None
    """At most; None: nothing limits them."""
    usd: float | None
    """US dollars at most; None: not known."""
    conductor: bool
    """Whether the step runs workflows of its own, whose calls are not known beforehand."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The steps that would be run, in order."""

    steps: tuple[StepEstimate, ...]
    pruned: tuple[int, ...]
    """Dead steps, which would be left out."""

    @property
    def calls(self) -> int:
        """How many workers would be asked, each once."""
        return sum(not step.conductor for step in self.steps)

    @property
    def usd(self) -> float | None:
        """US dollars at most, if each call succeeds at once; None: not known."""
        return total_usd(step.usd for step in self.steps)


def estimate(
    workflow: Workflow,
    question: Question,
    pool: WorkerPool,
    *,
    question_for: QuestionFor = "all",
    run_dead_steps: bool = False,
    previous: tuple[str, str] | None = None,
    replies: Mapping[int, str] = MappingProxyType({}),
) -> RunEstimate:
    """Work out what a run would ask. Steps that have replies already are left out, and shown to the others."""
    schedule = graph_of(workflow).schedule(run_dead_steps=run_dead_steps)
    shown = [replies.get(step, f"{{response of step {step}}}") for step in range(len(workflow))]
    longest: dict[int, int] = {}
    steps = []
    for step in range(len(workflow)):
        if schedule.missing[step] < 0 or step in replies:
            continue
        messages = messages_for(workflow, step, shown, question, question_for=question_for, previous=previous)
        profile = profile_of(pool, _ordinal(workflow, step))
        output = profile.output_bound(workflow[step].settings)
        longest[step] = output or 0
        unread = [seen for seen in workflow.sees(step) if seen not in replies]
        read = profile.input_bound(messages) + sum(longest[seen] - len(shown[seen]) for seen in unread)
        steps.append(_step_estimate(step, profile, messages, read, output))
    return RunEstimate(tuple(steps), schedule.pruned)


def _step_estimate(
    step: int, profile: WorkerProfile, messages: tuple[Message, ...], read: int, output: int | None
) -> StepEstimate:
    usd = None if output is None or profile.conductor else profile.cost_usd(Usage(read, output))
    return StepEstimate(step, profile.index, profile.name, messages, read, output, usd, profile.conductor)


def _ordinal(workflow: Workflow, step: int) -> int:
    worker = workflow[step].worker
    assert isinstance(worker, int)  # only workflows that can run are estimated
    return worker
