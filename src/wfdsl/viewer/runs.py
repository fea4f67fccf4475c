"""The records of runs as pages read them: each is kept as long as it has not changed and few others were read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from wfdsl.interpreter.journal_reading import RunSummary, run_of, summaries
from wfdsl.interpreter.record import Run
from wfdsl.render.html import Fact
from wfdsl.render.run_page import facts_of_run
from wfdsl.viewer.changes import RunIndex
from wfdsl.viewer.places import Place, place_at

_KEPT: Final = 8
"""Records that are kept. Our choice: a record may be large."""


class RunRecords:
    """Reads records, and keeps the latest ones."""

    def __init__(self, index: RunIndex) -> None:
        self._index = index
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[RunSummary, Run]] = OrderedDict()

    def find(self, run_id: str) -> tuple[RunSummary, Run]:
        """A run in one line, and its record.

        Raises:
            HTTPException: the journal has no such run.
            JournalFailure: it cannot be read.
        """
        summary = self._index.find(run_id)
        if summary is None:
            raise HTTPException(404, f"The journal {self._index.journal} has no run {run_id!r}.")
        with self._lock:
            kept = self._kept.get(run_id)
            if kept is None or kept[0] != summary:
                kept = self._kept[run_id] = (summary, run_of(self._index.journal, run_id))
            self._kept.move_to_end(run_id)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return kept


def run_in(request: Request) -> tuple[RunSummary, Run]:
    """The run that an address names.

    Raises:
        HTTPException: the journal has no such run.
    """
    records: RunRecords = request.app.state.records
    return records.find(request.path_params["id"])


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
