"""The records of runs as pages read them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request

from wfdsl.interpreter.journal_reading import RunSummary, run_of, summaries
from wfdsl.interpreter.record import Run
from wfdsl.render.html import Fact
from wfdsl.render.run_page import facts_of_run
from wfdsl.viewer.changes import RunIndex
from wfdsl.viewer.places import Place, place_at


@lru_cache(maxsize=8)  # a record may be large
def _record(journal: Path, run_id: str, version: str) -> Run:  # noqa: ARG001  (a part of the key)
    """A record, which is read again once the run has changed."""
    return run_of(journal, run_id)


def find_run(request: Request, run_id: str) -> tuple[RunSummary, Run]:
    """A run in one line, and its record.

    Raises:
        HTTPException: the journal has no such run.
        JournalFailure: it cannot be read.
    """
    index: RunIndex = request.app.state.index
    summary = index.find(run_id)
    if summary is None:
        raise HTTPException(404, f"The journal {index.journal} has no run {run_id!r}.")
    return summary, _record(index.journal, run_id, repr(summary))


def run_in(request: Request) -> tuple[RunSummary, Run]:
    """The run that an address names. Errors as for `find_run`."""
    return find_run(request, request.path_params["id"])


def facts_in(request: Request, run: Run) -> list[Fact]:
    """What is known of a run; of what was paid nothing, as long as no reply says whether its workers are free."""
    found = list(facts_of_run(run))
    if run.paid_usd == 0 and summaries(request.app.state.index.journal, run.id)[0].is_unpriced:
        return [fact for fact in found if fact.label != "paid"]
    return found


def place_in(request: Request, run: Run) -> Place:
    """The step that an address names.

    Raises:
        HTTPException: the run has no such step.
    """
    found = place_at(run, request.path_params["step"])
    if found is None:
        raise HTTPException(404, f"Run {run.id} has no step {request.path_params['step']!r}.")
    return found
