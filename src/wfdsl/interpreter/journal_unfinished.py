"""The record of a run that has none yet, made from its calls: of one in progress, or of one whose process has died.

The workflows that a Conductor wrote are read again from its completions. What ran instead of an invalid completion is
not in the journal, so the rounds of a record end before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from wfdsl.graph import graph_of
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetUsage
from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.context import messages_for
from wfdsl.interpreter.events import Path
from wfdsl.interpreter.record import LostCall, Run, StepRecord, cost_of, total_usd
from wfdsl.language.check import CheckConfig, check
from wfdsl.language.completion import read_completion
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Message, Reply, RunStatus, StepState


class Attempt(NamedTuple):
    """One attempt of one call, as the journal has it."""

    path: Path
    worker: str
    """The worker's name."""
    status: str
    """`started`, `finished`, `failed`, `rejected` (a reply that cannot be used), `duplicate` or `lost`."""
    started: float
    finished: float | None
    error: str
    reply: Reply | None = None
    charge: BudgetUsage = NOTHING_SPENT

    @property
    def answer(self) -> str | None:
        """What the worker answered, if that is the reply of its step."""
        is_answer = self.status == "finished" and self.reply is not None and not self.reply.tool_calls
        return self.reply.text if is_answer and self.reply is not None else None


def unfinished_run(
    run_id: str, request: RunRequest, calls: Sequence[Attempt], created: float, *, is_running: bool
) -> Run:
    """The record of a run, from its calls; `is_running`: its process still works on it."""
    charge = NOTHING_SPENT
    for call in calls:
        charge = charge.plus(call.charge)
    again = f"the same `wfdsl solve` command and --run-id {run_id}" if "solve" in request.origin else None
    error = f"the process ended before the run did; continue with: {again or f'wfdsl runs resume {run_id}'}"
    return replace(
        _Unfinished(run_id, calls, is_running).run(request, (), created),
        status="running" if is_running else "stopped",
        error="" if is_running else error,
        lost=tuple(
            LostCall(call.path, call.worker, call.started, call.charge.tokens, call.charge.usd)
            for call in calls
            if call.status == "lost" or (call.status == "started" and not is_running)
        ),
        charged=charge,
    )


@dataclass(frozen=True, slots=True)
class _Unfinished:
    run_id: str
    calls: Sequence[Attempt]
    is_running: bool

    def run(self, request: RunRequest, at: Path, started: float, *, is_last: bool = True) -> Run:
        """A run from the calls inside it; `at` is its path, which is empty for the outermost one."""
        workflow = request.workflow
        pruned = graph_of(workflow).schedule(run_dead_steps=request.config.run_dead_steps).pruned
        responses: dict[int, str] = {}
        steps: list[StepRecord] = []
        for index in range(len(workflow)):
            step = self._step(request, (*at, index), responses, is_open=self.is_running and is_last)
            later = range(index + 1, len(workflow))
            if step.nested and any(index in workflow.sees(each) and self._inside((*at, each)) for each in later):
                over = step.nested[-1]  # the steps that see a Conductor node begin when it is over
                step = replace(step, status="done", response=over.answer, finished=over.finished)
            if step.response is not None:
                responses[index] = step.response
            steps.append(replace(step, status="pruned") if index in pruned and step.status == "waiting" else step)
        is_open = self.is_running and is_last
        status: RunStatus = "done" if steps[-1].status == "done" else "running" if is_open else "stopped"
        ends = [step.finished or started for step in steps]
        return Run(
            id=self.run_id,
            workflow=workflow,
            question=request.question,
            steps=tuple(steps),
            status=status,
            started=started,
            finished=max(ends) if at and status != "running" else None,
            names=request.names,
            pool=request.pool,
            settings=request.settings(),
        )

    def _step(self, request: RunRequest, at: Path, responses: dict[int, str], *, is_open: bool) -> StepRecord:
        asked = request.workflow[at[-1]].worker
        assert isinstance(asked, int)  # requests hold workflows that could run
        calls = self._inside(at)
        if not calls:
            return StepRecord(at[-1], asked)
        own = [call for call in calls if call.path == at]
        record = StepRecord(at[-1], asked, messages=_messages(request, at[-1], responses), started=calls[0].started)
        if not own:
            return self._node(request, at, calls, record, is_open=is_open)
        last = next((call for call in own if call.answer is not None), own[-1])
        status: StepState = "running" if is_open else "failed" if last.status in ("failed", "rejected") else "stopped"
        if last.answer is not None:
            status = "done"
        usage, paid_usd, list_usd = cost_of([call.reply for call in own if call.reply is not None])
        is_over = status != "running"
        found = replace(
            record,
            worker_name=last.worker,
            status=status,
            finished=last.finished if is_over else None,
            retries=sum(call.status in ("failed", "rejected") for call in own),
            error=last.error if is_over else "",
            usage=usage,
            paid_usd=paid_usd,
            list_usd=list_usd,
        )
        if last.answer is None or last.reply is None:
            return found
        reply = last.reply
        found.response, found.finish, found.ending = reply.text, reply.finish, reply.ending
        found.model, found.thinking = reply.model, reply.thinking
        return found

    def _node(
        self, request: RunRequest, at: Path, calls: Sequence[Attempt], record: StepRecord, *, is_open: bool
    ) -> StepRecord:
        """A step whose worker is a Conductor, with the rounds that can be read again; only the last may be running."""
        question = request.question if record.worker < 0 else record.messages  # the root Conductor is asked directly
        asked = replace(request, question=question, names=None, previous=None)
        own = [call for call in calls if call.path[len(at) + 1 :] == (OWN_STEP,)]
        nested: list[Run] = []
        latest = calls[-1].path[len(at)]
        for number in range(latest + 1):
            inside = [call for call in self._inside((*at, number)) if call not in own]
            written = [call.answer for call in own if call.path[len(at)] == number and call.answer is not None]
            workflow = _workflow_in(written[-1]) if written else None
            if workflow is None or not inside or any(call.path[len(at) + 1] >= len(workflow) for call in inside):
                break
            asked = replace(asked, workflow=workflow)
            is_last = is_open and number == latest
            nested.append(self.run(asked, (*at, number), inside[0].started, is_last=is_last))
            asked = replace(asked, previous=(workflow[-1].subtask, nested[-1].answer or ""))
        usage, paid_usd, list_usd = cost_of([call.reply for call in own if call.reply is not None])
        return replace(
            record,
            worker_name=own[0].worker if own else "",
            status="running" if is_open else "stopped",
            nested=tuple(nested),
            usage=sum((run.usage for run in nested), usage),
            paid_usd=total_usd([paid_usd, *(run.paid_usd for run in nested)]),
            list_usd=total_usd([list_usd, *(run.list_usd for run in nested)]),
        )

    def _inside(self, at: Path) -> list[Attempt]:
        return [call for call in self.calls if call.path[: len(at)] == at]


def _workflow_in(text: str) -> Workflow | None:
    """The workflow that a completion holds; None if it holds none that can be run."""
    reading = read_completion(text, "lenient")
    if reading.tree is None or not reading.complete or reading.passthrough:
        return None
    found = [*reading.diagnostics, *check(reading.tree, CheckConfig(max_steps=None))]
    return None if any(each.is_error for each in found) else Workflow.from_tree(reading.tree)


def _messages(request: RunRequest, step: int, responses: dict[int, str]) -> tuple[Message, ...]:
    """What a step was shown; nothing if it saw a reply of another run, which this run's calls do not hold."""
    workflow, config = request.workflow, request.config
    if not responses.keys() >= set(workflow.sees(step)):
        return ()
    return messages_for(
        workflow,
        step,
        responses,
        request.question,
        question_for=config.question_for,
        previous=request.previous,
    )
