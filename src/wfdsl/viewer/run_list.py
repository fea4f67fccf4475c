"""The list of runs: filters, the runs of an evaluation in one row, and what each run is about, costs and does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from wfdsl.errors import UsageError
from wfdsl.interpreter.journal_reading import STATUSES, RunSummary
from wfdsl.viewer.page import page

_PAGE: Final = 100
"""Rows of one page. Our choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which runs are listed; what is empty does not filter."""

    status: str = ""
    text: str = ""
    """Words that are all in the run's id, question, pool or policy."""
    evaluation: str = ""

    @classmethod
    def of_query(cls, query: QueryParams) -> Filters:
        """The filters that an address names.

        Raises:
            UsageError: there is no such status.
        """
        found = cls(**{name: query.get(name, "").strip() for name in cls.__slots__})
        if found.status and found.status not in STATUSES:
            raise UsageError(f"status must be one of {', '.join(STATUSES)} (got {found.status!r})")
        return found

    def select(self, runs: Iterable[RunSummary]) -> list[RunSummary]:
        """The runs that are asked for."""
        words = self.text.casefold().split()
        return [
            run
            for run in runs
            if (not self.status or run.status == self.status)
            and (not self.evaluation or run.origin.get("evaluation") == self.evaluation)
            and (not words or _has(run, words))
        ]

    def query(self, **changes: object) -> str:
        """The query of an address with these filters, changed."""
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        return urlencode({name: value for name, value in values.items() if value})


def _has(run: RunSummary, words: Sequence[str]) -> bool:
    text = f"{run.id} {run.title} {run.pool} {run.by}".casefold()
    return all(word in text for word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A run, or all runs of an evaluation."""

    runs: Sequence[RunSummary]

    @property
    def run(self) -> RunSummary:
        """The newest run."""
        return self.runs[0]

    @property
    def evaluation(self) -> str:
        """The evaluation that the row stands for; empty for one run."""
        return self.run.origin.get("evaluation", "") if len(self.runs) > 1 else ""

    @property
    def statuses(self) -> list[tuple[str, int]]:
        """How many runs have each status, most first."""
        return Counter(run.status for run in self.runs).most_common()

    @property
    def by(self) -> str:
        """Who decided on the steps."""
        names = sorted({run.by for run in self.runs if run.by})
        return ", ".join(names) if len(names) < 3 else f"{len(names)} policies"

    @property
    def calls(self) -> int:
        """Calls that were charged."""
        return sum(run.charged.calls for run in self.runs)

    @property
    def usd(self) -> float:
        """US dollars that were charged."""
        return sum(run.charged.usd for run in self.runs)

    @property
    def is_bound(self) -> bool:
        """Whether `usd` holds calls at the most that they may have cost."""
        return any(run.is_bound for run in self.runs)

    @property
    def last_event(self) -> float | None:
        """When a call was last started or ended."""
        return max((run.last_event for run in self.runs if run.last_event is not None), default=None)


def show_runs(request: Request) -> Response:
    """The list."""
    filters = Filters.of_query(request.query_params)
    version = request.app.state.index.version()  # read first: a page is rather shown again than not
    everything = request.app.state.index.runs()
    found = filters.select(everything)
    rows = [Row(runs=[run]) for run in found] if filters.evaluation else _folded(found)
    pages = max(-(-len(rows) // _PAGE), 1)
    asked = request.query_params.get("page", "1")
    number = min(max(int(asked), 1), pages) if re.fullmatch("[0-9]{1,8}", asked) else 1
    return page(
        request,
        "runs.html",
        filters=filters,
        rows=rows[(number - 1) * _PAGE : number * _PAGE],
        version=version,
        count=len(found),
        total=len(everything),
        number=number,
        pages=pages,
        statuses=STATUSES,
    )


def _folded(runs: Iterable[RunSummary]) -> list[Row]:
    """The runs of each evaluation in one row, where the newest of them is; all others alone."""
    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        groups.setdefault(run.origin.get("evaluation") or f"run {run.id}", []).append(run)
    return [Row(runs=group) for group in groups.values()]
