"""The record of a run whose process ended before it could write one, put together from the calls in the journal.

The workflows that a Conductor wrote are read again from its completions. What ran instead of an invalid completion is
not in the journal, so the rounds of a record end before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from wfdsl.graph import graph_of
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetUsage
from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.context import messages_for
from wfdsl.interpreter.events import Path
from wfdsl.interpreter.journal import reply_from_json
from wfdsl.interpreter.record import LostCall, Run, StepRecord, cost_of, total_usd
from wfdsl.language.check import CheckConfig, check
from wfdsl.language.completion import read_completion
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Message, Reply, RunStatus, StepState


@dataclass(frozen=True, slots=True)
class CallRow:
    """One attempt of one call, as the journal has it."""

    id: int
    path: str
    worker: str
    status: str
    started: float
    finished: float | None
    reply: str | None
    error: str
    calls: int
    tokens: int
    usd: float

    @property
    def steps(self) -> Path:
        """The path of the call."""
        return tuple(json.loads(self.path))

    @property
    def answer(self) -> Reply:
        """The reply of a call that has finished, or whose reply was rejected."""
        if self.reply is None:
            raise ValueError("a reply is missing")
        return reply_from_json(self.reply)


def put_together(run_id: str, request: RunRequest, rows: Sequence[CallRow], created: float, *, is_running: bool) -> Run:
    """The record of a run, from its calls.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: a reply is damaged.
    """
    charge = NOTHING_SPENT
    for row in rows:
        charge = charge.plus(BudgetUsage(row.calls, row.tokens, row.usd))
    run = _run(run_id, request, rows, created, at=(), is_running=is_running)
    by_conductor = "solve" in request.origin
    again = f"the same `wfdsl solve` command and --run-id {run_id}" if by_conductor else f"wfdsl resume {run_id}"
    return replace(
        run,
        status="running" if is_running else "stopped",
        error="" if is_running else f"the process ended before the run did; continue with: {again}",
        lost=tuple(
            LostCall(row.steps, row.worker, row.started, row.tokens, row.usd)
            for row in rows
            if row.status == "lost" or (row.status == "started" and not is_running)
        ),
        charged=charge,
    )


def _run(
    run_id: str, request: RunRequest, rows: Sequence[CallRow], started: float, *, at: Path, is_running: bool
) -> Run:
    """A run from the calls inside it; `at` is its path, which is empty for the outermost one."""
    pruned = graph_of(request.workflow).schedule(run_dead_steps=request.config.run_dead_steps).pruned
    by_step: dict[int, list[CallRow]] = {index: [] for index in range(len(request.workflow))}
    for row in rows:
        if row.status not in ("called", "answered"):
            by_step[row.steps[len(at)]].append(row)
    responses = {
        index: row.answer.text
        for index in range(len(request.workflow))
        for row in by_step[index]
        if row.status == "finished" and row.steps == (*at, index) and not row.answer.tool_calls
    }
    steps: list[StepRecord] = []
    for index in range(len(request.workflow)):
        step = _step(
            run_id,
            request,
            by_step[index],
            responses,
            at=(*at, index),
            is_pruned=index in pruned,
            is_running=is_running,
        )
        seen = any(by_step[later] and index in request.workflow.sees(later) for later in range(index, len(by_step)))
        ended = next((run for run in reversed(step.nested) if run.answer is not None), None)
        if seen and ended is not None and ended.answer is not None:  # a Conductor node that is over
            step = replace(step, status="done", response=ended.answer, finished=ended.finished)
            responses[index] = ended.answer
        steps.append(step)
    status: RunStatus = "done" if steps[-1].status == "done" else "running" if is_running else "stopped"
    is_over = bool(at) and status != "running"
    return Run(
        id=run_id,
        workflow=request.workflow,
        question=request.question,
        steps=tuple(steps),
        status=status,
        started=started,
        finished=max((step.finished or started for step in steps), default=None) if is_over else None,
        names=request.names,
        pool=request.pool,
        settings=request.settings(),
    )


def _step(
    run_id: str,
    request: RunRequest,
    rows: Sequence[CallRow],
    responses: dict[int, str],
    *,
    at: Path,
    is_pruned: bool,
    is_running: bool,
) -> StepRecord:
    index = at[-1]
    worker = request.workflow[index].worker
    assert isinstance(worker, int)  # requests hold workflows that could run
    if not rows:
        return StepRecord(index, worker, status="pruned" if is_pruned else "waiting")
    messages = _messages(request, index, responses)
    if len(rows[0].steps) > len(at):
        record = StepRecord(index, worker, messages=messages)
        return _node(run_id, replace(request, names=None), rows, record, at=at, is_running=is_running)
    last = next((row for row in rows if row.status == "finished" and not row.answer.tool_calls), rows[-1])
    status = _status_of(last, is_running=is_running)
    usage, paid_usd, list_usd = cost_of(_replies(rows))
    plain: dict[str, Any] = {
        "worker_name": last.worker,
        "messages": messages,
        "started": rows[0].started,
        "finished": None if status == "running" else last.finished,
        "retries": sum(row.status in ("failed", "rejected") for row in rows),
        "error": "" if status == "running" else last.error,
        "usage": usage,
        "paid_usd": paid_usd,
        "list_usd": list_usd,
    }
    if status == "done":
        reply = last.answer
        plain |= {"response": reply.text, "finish": reply.finish, "model": reply.model, "thinking": reply.thinking}
    return StepRecord(index, worker, status=status, **plain)


def _status_of(last: CallRow, *, is_running: bool) -> StepState:
    """The state of a step whose last call is this. A call that failed is made again as long as the run continues."""
    if last.status == "finished" and not last.answer.tool_calls:
        return "done"
    if is_running:
        return "running"
    return "failed" if last.status in ("failed", "rejected") else "stopped"


def _node(
    run_id: str,
    request: RunRequest,
    rows: Sequence[CallRow],
    record: StepRecord,
    *,
    at: Path,
    is_running: bool,
) -> StepRecord:
    """A step whose worker is a Conductor, with the rounds that can be read again; only the last one may be running."""
    own = [row for row in rows if row.steps[len(at) + 1 :] == (OWN_STEP,)]
    is_root = record.worker < 0
    asked = replace(request, question=request.question if is_root else record.messages, previous=None)
    nested: list[Run] = []
    latest = rows[-1].steps[len(at)]
    for number in range(latest + 1):
        inside = [row for row in rows if row.steps[len(at)] == number and row not in own]
        written = [row.answer.text for row in own if row.steps[len(at)] == number and row.status == "finished"]
        workflow = _workflow_in(written[-1]) if written else None
        if workflow is None or not all(row.steps[len(at) + 1] < len(workflow) for row in inside) or not inside:
            break
        asked = replace(asked, workflow=workflow)
        is_open = is_running and number == latest
        nested.append(_run(run_id, asked, inside, inside[0].started, at=(*at, number), is_running=is_open))
        asked = replace(asked, previous=(workflow[-1].subtask, nested[-1].answer or ""))
    usage, paid_usd, list_usd = cost_of(_replies(own))
    return replace(
        record,
        worker_name=own[0].worker if own else "",
        started=rows[0].started,
        status="running" if is_running else "stopped",
        nested=tuple(nested),
        usage=sum((run.usage for run in nested), usage),
        paid_usd=total_usd([paid_usd, *(run.paid_usd for run in nested)]),
        list_usd=total_usd([list_usd, *(run.list_usd for run in nested)]),
    )


def _replies(rows: Sequence[CallRow]) -> list[Reply]:
    """All replies that were paid for, those that could not be used too."""
    return [row.answer for row in rows if row.status in ("finished", "rejected")]


def _workflow_in(text: str) -> Workflow | None:
    """The workflow that a completion holds; None if it holds none that can be run."""
    reading = read_completion(text, "lenient")
    if reading.tree is None or not reading.complete or reading.passthrough:
        return None
    found = [*reading.diagnostics, *check(reading.tree, CheckConfig(max_steps=None))]
    return None if any(each.is_error for each in found) else Workflow.from_tree(reading.tree)


def _messages(request: RunRequest, step: int, responses: dict[int, str]) -> tuple[Message, ...]:
    """What a step was shown; nothing if it saw a reply of another run, which this run's calls do not hold."""
    if not responses.keys() >= set(request.workflow.sees(step)):
        return ()
    return messages_for(
        request.workflow,
        step,
        responses,
        request.question,
        question_for=request.config.question_for,
        previous=request.previous,
    )
