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
from functools import reduce
from pathlib import Path, PurePath

from wfdsl.api import analyze
from wfdsl.errors import JournalFailure, UsageError
from wfdsl.graph import graph_of
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetUsage
from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.events import Path as CallPath
from wfdsl.interpreter.journal import OF_RUN, TOOL_CALLS, Attempt, attempts_in, decoding
from wfdsl.interpreter.journal_file import connect, failure, is_alive
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.protocols import RunStatus


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
        return tuple(each for each in attempts_in(connection, path, run_id) if each.status not in TOOL_CALLS)


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
            if row is not None and is_alive(path, row[0]):
                raise UsageError(f"run {run_id} is being worked on; stop it first")
        connection.execute("BEGIN IMMEDIATE")
        removed = sum(connection.execute("DELETE FROM runs WHERE id = ?", (run_id,)).rowcount for run_id in wanted)
        connection.execute("COMMIT")
        if removed:
            connection.executescript("PRAGMA incremental_vacuum")  # `execute` would do one page
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
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
_FAILED = ("failed", "rejected")


def _status(path: Path, status: str, owner: str | None) -> str:
    return "interrupted" if status == "running" and not is_alive(path, owner) else status


def unfinished_run(
    run_id: str, request: RunRequest, calls: Sequence[Attempt], created: float, *, is_running: bool
) -> Run:
    """The record of a run, from its calls; `is_running`: its process still works on it."""
    error = f"the run was stopped before its end; continue with: wfdsl runs resume {run_id}"
    return replace(
        _Unfinished(run_id, calls).run(request, (), created, is_open=is_running),
        status="running" if is_running else "stopped",
        error="" if is_running else error,
        lost=tuple(
            call.lost for call in calls if call.status == "lost" or (call.status == "started" and not is_running)
        ),
        charged=reduce(BudgetUsage.plus, (call.charge for call in calls), NOTHING_SPENT),
    )


@dataclass(frozen=True, slots=True)
class _Unfinished:
    run_id: str
    calls: Sequence[Attempt]

    def run(self, request: RunRequest, at: CallPath, started: float, *, is_open: bool) -> Run:
        """A run from the calls inside it; `at` is its path, which is empty for the outermost one."""
        workflow = request.workflow
        schedule = graph_of(workflow).schedule(run_dead_steps=request.config.run_dead_steps)
        responses: dict[int, str] = {}
        steps: list[StepRecord] = []
        for index, seen_by in enumerate(schedule.seen_by):
            step = self._step(request, (*at, index), responses, is_open=is_open)
            if step.nested and any(self._inside((*at, later)) for later in seen_by):
                over = step.nested[-1]  # the steps that see a Conductor node begin when it is over
                step.status, step.response, step.finished = "done", over.answer, over.finished
            elif index in schedule.pruned and step.status == "waiting":
                step.status = "pruned"
            if step.response is not None:
                responses[index] = step.response
            steps.append(step)
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
        index, calls = at[-1], self._inside(at)
        asked = request.workflow[index].worker
        assert isinstance(asked, int)  # requests hold workflows that could run
        record = StepRecord(index, asked)
        if not calls:
            return record
        if responses.keys() >= set(request.workflow.sees(index)):  # a reply of another run is not among the calls
            record.messages = request.messages_of(index, responses)
        for call in calls:
            if call.reply is not None:
                record.count(call.reply)
        record.started, record.status = calls[0].started, "running" if is_open else "stopped"
        own = [call for call in calls if call.path == at]
        if not own:
            record.worker_name = calls[0].worker
            question = request.question if asked < 0 else record.messages  # the root Conductor is asked directly
            record.nested = tuple(self._rounds(replace(request, question=question), at, is_open=is_open))
            return record
        last = next((call for call in own if call.answer is not None), own[-1])
        record.worker_name, record.retries = last.worker, sum(call.status in _FAILED for call in own)
        if last.answer is not None and last.reply is not None:
            record.status = "done"
            record.take(last.reply)
        elif last.status in _FAILED and not is_open:
            record.status = "failed"
        if record.status != "running":
            record.finished, record.error = last.finished, last.error
        return record

    def _rounds(self, request: RunRequest, at: CallPath, *, is_open: bool) -> Iterator[Run]:
        """The rounds of a Conductor that can be read again; only the last may be running."""
        asked, latest = replace(request, names=None, previous=None), self._inside(at)[-1].path[len(at)]
        for number in range(latest + 1):
            here = (*at, number)
            calls = self._inside(here)
            inside = [call for call in calls if call.path[len(here)] != OWN_STEP]
            written = [call.answer for call in calls if call not in inside and call.answer is not None]
            workflow = analyze(written[-1], profile="lenient", max_steps=None).workflow if written else None
            if workflow is None or not inside or any(call.path[len(here)] >= len(workflow) for call in inside):
                return
            asked = replace(asked, workflow=workflow)
            run = self.run(asked, here, inside[0].started, is_open=is_open and number == latest)
            yield run
            asked = replace(asked, previous=(workflow[-1].subtask, run.answer or ""))

    def _inside(self, at: CallPath) -> list[Attempt]:
        return [call for call in self.calls if call.path[: len(at)] == at]
