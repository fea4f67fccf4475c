"""What a run would ask and could cost at most, as far as that is known before anything is asked.

A response that is not there yet is shown as a mark and counted, where later steps read it, as the longest reply of its
worker. Everything else that is read is counted at its UTF-8 bytes. Retries and nested runs are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wfdsl.graph import graph_of
from wfdsl.interpreter.context import messages_for
from wfdsl.interpreter.record import total_usd
from wfdsl.interpreter.terms import terms_of
from wfdsl.protocols import Usage

if TYPE_CHECKING:
    from wfdsl.interpreter.context import Question, QuestionFor
    from wfdsl.interpreter.environment import WorkerPool
    from wfdsl.interpreter.terms import Terms
    from wfdsl.language.workflow import Workflow
    from wfdsl.protocols import Message


@dataclass(frozen=True, slots=True)
class StepForecast:
    """One step that would be run."""

    step: int
    worker: int
    worker_name: str
    messages: tuple[Message, ...]
    """What it would be sent; responses to come stand as `{response of step N}`."""
    input_tokens: int
    """At most."""
    output_tokens: int | None
    """At most; None: nothing limits them."""
    usd: float | None
    """US dollars at most; None: not known."""
    conductor: bool
    """Whether the step runs workflows of its own, whose calls nobody can foresee."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The steps that would be run, in order."""

    steps: tuple[StepForecast, ...]
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


def forecast(
    workflow: Workflow,
    question: Question,
    pool: WorkerPool,
    *,
    question_for: QuestionFor = "all",
    run_dead_steps: bool = False,
) -> Forecast:
    """Work out what a run would ask."""
    schedule = graph_of(workflow).schedule(run_dead_steps=run_dead_steps)
    marks = [f"{{response of step {step}}}" for step in range(len(workflow))]
    longest: dict[int, int] = {}
    steps = []
    for step in range(len(workflow)):
        if schedule.missing[step] < 0:
            continue
        messages = messages_for(workflow, step, marks, question, question_for=question_for)
        terms = terms_of(pool, _ordinal(workflow, step))
        longest[step] = terms.output_bound({}) or 0
        unread = sum(len(marks[seen]) for seen in workflow.sees(step))
        read = terms.input_bound(messages) - unread + sum(longest[seen] for seen in workflow.sees(step))
        steps.append(_step_forecast(step, terms, messages, read))
    return Forecast(tuple(steps), schedule.pruned)


def _step_forecast(step: int, terms: Terms, messages: tuple[Message, ...], read: int) -> StepForecast:
    output = terms.output_bound({})
    usd = None if output is None or terms.conductor else terms.cost_usd(Usage(read, output))
    return StepForecast(step, terms.ordinal, terms.name, messages, read, output, usd, terms.conductor)


def _ordinal(workflow: Workflow, step: int) -> int:
    worker = workflow[step].worker
    assert isinstance(worker, int)  # only workflows that can run are forecast
    return worker
