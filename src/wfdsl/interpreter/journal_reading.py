"""Reading a journal: which runs it has, what they were asked, what happened, and which calls were lost.

The record of a run that has none yet is made from its calls: of one in progress, or of one whose process has died. The
workflows that a Conductor wrote are read again from its completions. What ran instead of an invalid completion is not
in the journal, so the rounds of such a record end before it.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import NamedTuple

from wfdsl.errors import JournalFailure, UsageError
from wfdsl.graph import graph_of
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetUsage
from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.context import messages_for
from wfdsl.interpreter.events import Path as CallPath
from wfdsl.interpreter.journal import OF_RUN, decoding, reply_from_json
from wfdsl.interpreter.journal_file import connect, failure, is_alive, shrink
from wfdsl.interpreter.record import LostCall, Run, StepRecord, cost_of
from wfdsl.language.check import CheckConfig, check
from wfdsl.language.completion import read_completion
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Message, Reply, RunStatus, StepState


class Attempt(NamedTuple):
    """One attempt of one call, as the journal has it."""

    path: CallPath
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


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in one line."""

    id: str
    created: float
    """Seconds since 1970."""
    status: str
    """As in a run's record; `interrupted`: its process ended before the run did."""
    title: str
    """The question."""
    charged: BudgetUsage
    is_bound: bool = False
    """Whether calls that were lost or still run are charged at their most."""
    is_unpriced: bool = False
    """Whether there was a call whose price is not known."""
    pool: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Where the caller found workflow or Conductor; of an evaluation its id, the policy and the task."""
    last_event: float | None = None
    """When a call was last started or ended, in seconds since 1970; None: none was made."""

    @property
    def by(self) -> str:
        """Who or what decided on the steps: a policy, a Conductor or a workflow file."""
        origin = self.origin
        return origin.get("policy") or origin.get("solve") or PurePath(origin.get("file", "")).name


_SUMMARIES = """
SELECT runs.id, created, runs.status, owner, title,
    coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(usd), 0.0),
    coalesce(sum(calls.status IN ('started', 'lost')), 0), coalesce(sum(run AND usd IS NULL), 0),
    json_extract(request, '$.pool'), json_extract(request, '$.origin'), max(coalesce(calls.finished, calls.started))
FROM runs LEFT JOIN calls ON calls.run = number {which} GROUP BY number ORDER BY number DESC
"""


def summaries(path: Path, run_id: str | None = None) -> list[RunSummary]:
    """The runs of a journal, newest first; or the one that is named.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    which, values = ("", ()) if run_id is None else ("WHERE runs.id = ?", (run_id,))
    with reading(path) as connection:
        rows = connection.execute(_SUMMARIES.format(which=which), values).fetchall()
    return [
        RunSummary(
            run_id,
            created,
            _status(path, status, owner),
            title,
            BudgetUsage(*charge),
            bool(unsure),
            bool(unpriced),
            pool or "",
            json.loads(origin or "{}"),
            last,
        )
        for run_id, created, status, owner, title, *charge, unsure, unpriced, pool, origin, last in rows
    ]


_SPENT = """
SELECT coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(usd), 0.0) FROM calls
WHERE started >= ? AND run IN (SELECT number FROM runs WHERE json_extract(request, '$.origin.key') = ?)
"""


def spent_by_key(path: Path, key: str, since: float) -> BudgetUsage:
    """What the calls of an API key's runs were charged since a time, in seconds since 1970; calls that still run, or
    were lost, at the most they may cost.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    with reading(path) as connection:
        return BudgetUsage(*connection.execute(_SPENT, (since, key)).fetchone())


def full_id(path: Path, prefix: str) -> str:
    """The run whose id begins like this; `last` is the newest.

    Raises:
        UsageError: there is none, or there are several.
    """
    with reading(path) as connection:
        found: list[str] = [row[0] for row in connection.execute("SELECT id FROM runs ORDER BY number DESC")]
    if prefix == "last" and found:
        return found[0]
    matching = [run_id for run_id in found if run_id == prefix] or [
        run_id for run_id in found if run_id.startswith(prefix)
    ]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UsageError(f"several runs begin with {prefix!r}: {', '.join(matching[:5])}; write more of the id")
    raise UsageError(f"the journal {path} has no run {prefix!r}; `wfdsl runs` lists those that it has")


def request_of(path: Path, run_id: str) -> RunRequest:
    """What a run was asked to do.

    Raises:
        UsageError: the journal has no such run.
    """
    with reading(path) as connection:
        row = connection.execute("SELECT request FROM runs WHERE id = ?", (run_id,)).fetchone()
    if row is None:
        raise UsageError(f"the journal {path} has no run {run_id!r}; `wfdsl runs` lists those that it has")
    with decoding(path, run_id):
        return RunRequest.from_json(row[0])


def run_of(path: Path, run_id: str) -> Run:
    """The record of a run; put together from its calls if its process ended before it could write one.

    Raises:
        UsageError: the journal has no such run.
    """
    request = request_of(path, run_id)
    with reading(path) as connection:
        created, status, owner, record = connection.execute(
            "SELECT created, status, owner, record FROM runs WHERE id = ?", (run_id,)
        ).fetchone()
    if record is not None and status != "running":
        with decoding(path, run_id):
            return Run.from_json(lzma.decompress(record).decode())
    is_running = _status(path, status, owner) == "running"
    return unfinished_run(run_id, request, attempts_of(path, run_id), created, is_running=is_running)


def runs_of_tool_calls(path: Path, call_ids: Collection[str]) -> set[str]:
    """The runs whose workers have made these tool calls.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    of_tool_call = "SELECT run FROM calls WHERE key = ? AND status IN ('called', 'answered')"
    query = f"SELECT id FROM runs WHERE number = ({of_tool_call})"
    with reading(path) as connection:
        found = [connection.execute(query, (call_id,)).fetchone() for call_id in call_ids]
    return {row[0] for row in found if row is not None}


def attempts_of(path: Path, run_id: str) -> tuple[Attempt, ...]:
    """Every attempt of a run, in the order in which they began.

    Raises:
        JournalFailure: the journal or the run cannot be read.
    """
    with reading(path) as connection:
        rows = connection.execute(_ATTEMPTS, (run_id,)).fetchall()
    with decoding(path, run_id):
        return tuple(
            Attempt(
                tuple(json.loads(steps)),
                worker,
                status,
                started,
                finished,
                error,
                reply_from_json(reply or "") if status == "finished" or reply else None,
                BudgetUsage(*charge),
            )
            for steps, worker, status, started, finished, error, reply, *charge in rows
        )


_ATTEMPTS = (
    "SELECT path, worker, status, started, finished, error, reply, calls, tokens, coalesce(usd, 0.0) FROM calls "
    f"WHERE {OF_RUN} AND status NOT IN ('called', 'answered') ORDER BY id"  # those are tool calls
)


def kept_replies(path: Path, run_id: str) -> tuple[Attempt, ...]:
    """The attempts of a run whose replies it has.

    Raises:
        JournalFailure: the journal or the run cannot be read.
    """
    return tuple(attempt for attempt in attempts_of(path, run_id) if attempt.status == "finished")


def add_copy(path: Path, run_id: str, request: RunRequest, source: str, kept: Iterable[Attempt]) -> None:
    """Write a run that has stopped, with replies of another run, which cost it nothing.

    Raises:
        JournalFailure: it cannot be written.
    """
    paths = json.dumps([json.dumps(each.path) for each in kept])
    with reading(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        number = connection.execute(
            "INSERT INTO runs (id, created, status, title, request) VALUES (?, ?, 'stopped', ?, ?)",
            (run_id, time.time(), request.title, request.to_json()),
        ).lastrowid
        connection.execute(_COPY, (number, run_id, source, paths))
        connection.execute("COMMIT")


_COPY = f"""
INSERT INTO calls (run, key, sample, path, worker, status, started, finished, reply, calls, tokens, usd)
SELECT ?, key, ?, path, worker, status, started, finished, json_set(reply, '$.paid_usd', 0.0), 0, 0, 0.0
FROM calls WHERE {OF_RUN} AND status = 'finished' AND path IN (SELECT value FROM json_each(?))
"""


def remove(path: Path, run_ids: Iterable[str]) -> int:
    """Forget runs and their calls, and give the space back to the file system; gives how many runs there were.

    Raises:
        UsageError: a process is working on one of them.
    """
    wanted = list(run_ids)
    with reading(path) as connection:
        for run_id in wanted:
            row = connection.execute("SELECT owner FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is not None and row[0] is not None and is_alive(_owners(path), row[0]):
                raise UsageError(f"run {run_id} is being worked on; stop it first")
        connection.execute("BEGIN IMMEDIATE")
        removed = sum(connection.execute("DELETE FROM runs WHERE id = ?", (run_id,)).rowcount for run_id in wanted)
        connection.execute("COMMIT")
        if removed:
            shrink(connection)
    return removed


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The journal, open for reading; what the database complains about is a `JournalFailure`."""
    if not path.exists():
        raise JournalFailure(
            f"there is no journal at {path}: nothing has been run yet, or WFDSL_HOME names another folder"
        )
    with closing(connect(path)) as connection:
        try:
            yield connection
        except sqlite3.Error as error:
            raise failure(path, error) from error


STATUSES = ("done", "failed", "budget", "stopped", "suspended", "interrupted", "running")
"""What the status of a run in a list may be."""


def _status(path: Path, status: str, owner: str | None) -> str:
    if status != "running":
        return status
    return "running" if owner is not None and is_alive(_owners(path), owner) else "interrupted"


def _owners(path: Path) -> Path:
    return path.with_name(path.name + ".owners")


def unfinished_run(
    run_id: str, request: RunRequest, calls: Sequence[Attempt], created: float, *, is_running: bool
) -> Run:
    """The record of a run, from its calls; `is_running`: its process still works on it."""
    charge = NOTHING_SPENT
    for call in calls:
        charge = charge.plus(call.charge)
    error = f"the process ended before the run did; continue with: wfdsl runs resume {run_id}"
    return replace(
        _Unfinished(run_id, calls).run(request, (), created, is_open=is_running),
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

    def run(self, request: RunRequest, at: CallPath, started: float, *, is_open: bool) -> Run:
        """A run from the calls inside it; `at` is its path, which is empty for the outermost one."""
        workflow = request.workflow
        pruned = graph_of(workflow).schedule(run_dead_steps=request.config.run_dead_steps).pruned
        responses: dict[int, str] = {}
        steps: list[StepRecord] = []
        for index in range(len(workflow)):
            step = self._step(request, (*at, index), responses, is_open=is_open)
            later = range(index + 1, len(workflow))
            if step.nested and any(index in workflow.sees(each) and self._inside((*at, each)) for each in later):
                over = step.nested[-1]  # the steps that see a Conductor node begin when it is over
                step = replace(step, status="done", response=over.answer, finished=over.finished)
            if step.response is not None:
                responses[index] = step.response
            steps.append(replace(step, status="pruned") if index in pruned and step.status == "waiting" else step)
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

    def _step(self, request: RunRequest, at: CallPath, responses: dict[int, str], *, is_open: bool) -> StepRecord:
        """A step from its own calls, or, if its worker is a Conductor, from those inside."""
        asked = request.workflow[at[-1]].worker
        assert isinstance(asked, int)  # requests hold workflows that could run
        calls = self._inside(at)
        if not calls:
            return StepRecord(at[-1], asked)
        own = [call for call in calls if call.path == at]
        last = next((call for call in own if call.answer is not None), own[-1] if own else calls[0])
        status: StepState = "running" if is_open else "stopped"
        if own and last.answer is not None:
            status = "done"
        elif own and not is_open and last.status in _FAILED:
            status = "failed"
        is_over = bool(own) and status != "running"
        usage, paid_usd, list_usd = cost_of([call.reply for call in calls if call.reply is not None])
        record = StepRecord(
            at[-1],
            asked,
            worker_name=last.worker,
            messages=_messages(request, at[-1], responses),
            status=status,
            started=calls[0].started,
            finished=last.finished if is_over else None,
            retries=sum(call.status in _FAILED for call in own),
            error=last.error if is_over else "",
            usage=usage,
            paid_usd=paid_usd,
            list_usd=list_usd,
        )
        if status == "done" and last.reply is not None:
            record.take(last.reply)
        if not own:
            question = request.question if asked < 0 else record.messages  # the root Conductor is asked directly
            record.nested = tuple(self._rounds(replace(request, question=question), at, is_open=is_open))
        return record

    def _rounds(self, request: RunRequest, at: CallPath, *, is_open: bool) -> Iterator[Run]:
        """The rounds of a Conductor that can be read again; only the last may be running."""
        asked, latest = replace(request, names=None, previous=None), self._inside(at)[-1].path[len(at)]
        for number in range(latest + 1):
            here = (*at, number)
            calls = self._inside(here)
            inside = [call for call in calls if call.path[len(here)] != OWN_STEP]
            written = [call.answer for call in calls if call not in inside and call.answer is not None]
            workflow = _workflow_in(written[-1]) if written else None
            if workflow is None or not inside or any(call.path[len(here)] >= len(workflow) for call in inside):
                return
            asked = replace(asked, workflow=workflow)
            run = self.run(asked, here, inside[0].started, is_open=is_open and number == latest)
            yield run
            asked = replace(asked, previous=(workflow[-1].subtask, run.answer or ""))

    def _inside(self, at: CallPath) -> list[Attempt]:
        return [call for call in self.calls if call.path[: len(at)] == at]


_FAILED = ("failed", "rejected")


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
