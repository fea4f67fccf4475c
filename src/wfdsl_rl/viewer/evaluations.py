"""Pages of evaluations: tables with errors, from each figure to its trials and their runs, and two policies compared.

Evaluations are found in the folders that `wfdsl view` is given: a folder with a manifest, or one that holds such
folders. The runs of a trial are in the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    RESULTS,
    Report,
    accuracy_table,
    comparison_table,
    cost_table,
    read_report,
)
from wfdsl.evaluation.statistics import difference_of
from wfdsl.evaluation.summary import Comparison, Summary, benchmark_of, split_of
from wfdsl.evaluation.trials import Trial
from wfdsl.viewer.app import Pages
from wfdsl.viewer.evaluation import show_evaluation
from wfdsl.viewer.page import page
from wfdsl_rl.viewer.folders import begins_with, find_folders

_PAGE: Final = 200
"""Trials of one page. Our choice."""


def pages(folders: Sequence[Path]) -> Pages:
    """The pages of the evaluations in some folders."""
    found = _Evaluations(folders)
    return Pages(
        title="Evaluations",
        path="/evaluations",
        routes=[
            Route("/evaluations", found.show_all),
            Route("/evaluations/{id}/trials", found.show_trials),
            Route("/evaluations/{id}/compare", found.compare),
            Route("/evaluations/{id}", found.show),
        ],
        templates=Path(__file__).parent / "templates",
    )


@dataclass(frozen=True, slots=True)
class _Cell:
    """A figure of a table, and the address of what it was made of."""

    text: str
    query: str = ""


class _Evaluations:
    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._kept: dict[Path, tuple[float, Report]] = {}

    def show_all(self, request: Request) -> Response:
        """The evaluations that were found, and those of which only the journal knows."""
        reports, problems = self._reports()
        in_journal: dict[str, int] = {}
        for run in request.app.state.index.runs():
            name = run.origin.get("evaluation", "")
            if name:
                in_journal[name] = in_journal.get(name, 0) + 1
        known = {report.manifest["id"] for report in reports}
        others = {name: count for name, count in in_journal.items() if name not in known}
        return page(
            request, "evaluations.html", reports=reports, others=others, problems=problems, folders=self._folders
        )

    def show(self, request: Request) -> Response:
        """One evaluation: accuracies, costs and comparisons; without its folder, what the journal knows of it."""
        report = self._find(request)
        if report is None:
            return show_evaluation(request)
        summary = report.summary()
        return page(
            request,
            "evaluation.html",
            report=report,
            summary=summary,
            accuracies=_linked(*accuracy_table(summary), summary),
            costs=_linked(*cost_table(summary), summary),
            comparisons=comparison_table(summary.comparisons),
            first=summary.policies[0].policy if summary.policies else "",
            compared=COMPARED,
        )

    def show_trials(self, request: Request) -> Response:
        """The trials that a figure was made of, each with its run."""
        report = self._require(request)
        query = request.query_params
        split = split_of(report.trials)
        found = [
            trial
            for trial in report.trials
            if query.get("policy", trial.policy) == trial.policy
            and query.get("benchmark", benchmark_of(trial, split)) == benchmark_of(trial, split)
            and query.get("outcome", trial.outcome) == trial.outcome
        ]
        in_journal = {run.id for run in request.app.state.index.runs()}
        return page(
            request, "trials.html", report=report, trials=found[:_PAGE], count=len(found), in_journal=in_journal,
            chosen=[f"{name}: {query[name]}" for name in ("policy", "benchmark", "outcome") if name in query],
        )  # fmt: skip

    def compare(self, request: Request) -> Response:
        """Two policies, task by task."""
        report = self._require(request)
        names = [request.query_params.get(name, "") for name in ("a", "b")]
        for name in names:
            if name not in report.policies:
                raise HTTPException(404, f"Evaluation {report.manifest['id']} has no policy {name!r}.")
        first, second = names
        trials = [report.of(first), report.of(second)]
        found = Comparison(first=first, second=second, difference=difference_of(*trials))
        in_journal = {run.id for run in request.app.state.index.runs()}
        pairs = list(_pairs(*trials))
        summaries = {policy.policy: policy for policy in report.summary().policies}
        return page(
            request, "policies.html", report=report, first=first, second=second, table=comparison_table([found]),
            differing=[pair for pair in pairs if pair[0].outcome != pair[1].outcome][:_PAGE], count=len(pairs),
            takes=cost_table(_only(report.summary(), names)), compared=COMPARED, in_journal=in_journal,
            known=[name in summaries for name in names],
        )  # fmt: skip

    def _require(self, request: Request) -> Report:
        report = self._find(request)
        if report is None:
            raise HTTPException(404, f"No folder of evaluation {request.path_params['id']!r} was found.")
        return report

    def _find(self, request: Request) -> Report | None:
        reports, _ = self._reports()
        return next((report for report in reports if report.manifest["id"] == request.path_params["id"]), None)

    def _reports(self) -> tuple[list[Report], list[str]]:
        """The evaluations, newest first; and what is wrong with folders that cannot be read."""
        found, problems = [], []
        for folder in find_folders(self._folders, _is_evaluation):
            try:
                found.append(self._read(folder))
            except UsageError as error:
                problems.append(str(error))
        return sorted(found, key=lambda report: str(report.manifest["id"]), reverse=True), problems

    def _read(self, folder: Path) -> Report:
        """A report, which is read again once its results have changed."""
        results = folder / RESULTS
        changed = results.stat().st_mtime if results.exists() else 0.0
        kept = self._kept.get(folder)
        if kept is None or kept[0] != changed:
            kept = self._kept[folder] = (changed, read_report(folder))
        return kept[1]


def _is_evaluation(folder: Path) -> bool:
    return begins_with(folder / "manifest.json", b'"wfdsl-evaluation"')


def _only(summary: Summary, policies: Sequence[str]) -> Summary:
    kept = tuple(policy for policy in summary.policies if policy.policy in policies)
    return Summary(
        split=summary.split, benchmarks=summary.benchmarks, policies=kept, comparisons=(), simulated=summary.simulated
    )


def _linked(head: list[str], rows: list[list[str]], summary: Summary) -> tuple[list[str], list[list[_Cell]]]:
    """A table whose figures lead to their trials."""
    return head, [[_cell(name, text, row[0], summary) for name, text in zip(head, row, strict=True)] for row in rows]


def _cell(column: str, text: str, policy: str, summary: Summary) -> _Cell:
    query = {"policy": policy}
    if column in summary.benchmarks:
        query["benchmark"] = column
    if column in ("failed", "unjudged"):
        query["outcome"] = column
    return _Cell(text, urlencode(query))


def _pairs(first: Sequence[Trial], second: Sequence[Trial]) -> Iterator[tuple[Trial, Trial]]:
    """The trials of two policies on the same task and repeat."""
    others = {(trial.task_hash, trial.repeat): trial for trial in second}
    for trial in first:
        other = others.get((trial.task_hash, trial.repeat))
        if other is not None:
            yield trial, other
