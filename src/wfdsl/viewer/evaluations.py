"""Pages of evaluations: tables with errors, and from each figure to its trials and their runs.

Evaluations are found in the folders that `wfdsl view` is given, and up to two folders inside of them. The runs of a
trial are in the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from wfdsl.errors import UsageError
from wfdsl.evaluation.report import (
    COMPARED,
    Report,
    Summary,
    accuracy_table,
    benchmark_of,
    comparison_table,
    cost_table,
    read_report,
    split_of,
)
from wfdsl.evaluation.trials import Trial
from wfdsl.viewer.page import page

_MOST_TRIALS: Final = 200
"""Trials of one page. Our choice."""


class Evaluations:
    """The evaluations in some folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self.routes = [Route("/evaluations", self.show_all), Route("/evaluations/{id}", self.show)]

    def show_all(self, request: Request) -> Response:
        """The evaluations that were found."""
        reports, problems = self._reports()
        return page(request, "evaluations.html", reports=reports, problems=problems, folders=self._folders)

    def show(self, request: Request) -> Response:
        """One evaluation: accuracies, costs and comparisons; with a query, the trials that a figure was made of."""
        name, query = request.path_params["id"], request.query_params
        report = next((each for each in self._reports()[0] if each.manifest["id"] == name), None)
        if report is None:
            raise HTTPException(404, f"No folder of evaluation {name!r} was found: give it to wfdsl view.")
        summary = report.summary()
        chosen = {key: query[key] for key in ("policy", "benchmark", "outcome") if key in query}
        trials = list(_chosen(report, chosen)) if chosen else []
        return page(
            request,
            "evaluation.html",
            report=report,
            summary=summary,
            tables={
                "Accuracy, per cent with 95 % interval": _linked(*accuracy_table(summary), summary),
                "What a sample takes": _linked(*cost_table(summary), summary),
            },
            comparisons=comparison_table(summary.comparisons),
            compared=COMPARED,
            chosen=chosen,
            trials=trials[:_MOST_TRIALS],
            count=len(trials),
            in_journal={run.id for run in request.app.state.index.runs()},
        )

    def _reports(self) -> tuple[list[Report], list[str]]:
        """The evaluations, newest first; and what is wrong with folders that cannot be read."""
        found, problems = {}, []
        patterns = ("manifest.json", "*/manifest.json", "*/*/manifest.json")
        for manifest in chain.from_iterable(folder.glob(each) for folder in self._folders for each in patterns):
            if b'"wfdsl-evaluation"' not in manifest.read_bytes()[:2000]:
                continue
            try:
                found[manifest.resolve()] = read_report(manifest.parent)
            except UsageError as error:
                problems.append(str(error))
        return sorted(found.values(), key=lambda report: str(report.manifest["id"]), reverse=True), problems


def _chosen(report: Report, chosen: dict[str, str]) -> Iterator[Trial]:
    split = split_of(report.trials)
    for trial in report.trials:
        own = {"policy": trial.policy, "benchmark": benchmark_of(trial, split), "outcome": trial.outcome}
        if chosen.items() <= own.items():
            yield trial


def _linked(head: list[str], rows: list[list[str]], summary: Summary) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """A table whose figures have the query of the page with their trials."""
    return head, [[(text, _query(name, row[0], summary)) for name, text in zip(head, row, strict=True)] for row in rows]


def _query(column: str, policy: str, summary: Summary) -> str:
    query = {"policy": policy}
    if column in summary.benchmarks:
        query["benchmark"] = column
    if column in ("failed", "unjudged"):
        query["outcome"] = column
    return urlencode(query)
