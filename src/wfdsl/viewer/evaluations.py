"""Pages of evaluations: tables with errors, from each figure to its trials and their runs, and two policies compared.

Evaluations are found in the folders that `wfdsl view` is given: a folder with a manifest, or one that holds such
folders. The runs of a trial are in the journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
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
    Report,
    accuracy_table,
    comparison_table,
    cost_table,
    read_report,
)
from wfdsl.evaluation.statistics import difference_of
from wfdsl.evaluation.summary import Comparison, Summary, benchmark_of, split_of
from wfdsl.evaluation.trials import RESULTS, Trial
from wfdsl.interpreter.journal_reading import RunSummary
from wfdsl.viewer.page import page
from wfdsl.viewer.run_list import Row

_PAGE: Final = 200
"""Trials of one page. Our choice."""
_DEEPEST: Final = 2
"""How many folders inside of a folder are looked into. Our choice."""
_MOST_FOLDERS: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Cell:
    """A figure of a table, and the address of what it was made of."""

    text: str
    query: str = ""


class Evaluations:
    """The evaluations in some folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self.routes = [
            Route("/evaluations", self.show_all),
            Route("/evaluations/{id}/trials", self.show_trials),
            Route("/evaluations/{id}/compare", self.compare),
            Route("/evaluations/{id}", self.show),
        ]
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
            return _show_runs(request)
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
        for folder in _find_folders(self._folders):
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


def _find_folders(folders: Iterable[Path]) -> list[Path]:
    """The folders of evaluations, among some folders and those inside of them."""
    found: dict[Path, None] = {}
    left = [(folder.absolute(), 0) for folder in folders]
    for number, (folder, depth) in enumerate(left):
        if number >= _MOST_FOLDERS:
            break
        if _is_evaluation(folder):
            found[folder] = None
        elif depth < _DEEPEST:
            left += [(each, depth + 1) for each in _inside(folder)]
    return list(found)


def _is_evaluation(folder: Path) -> bool:
    try:
        with (folder / "manifest.json").open("rb") as file:
            return b'"wfdsl-evaluation"' in file.read(2000)
    except OSError:  # one that may not be read has none of ours
        return False


def _inside(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(each.path) for each in entries if each.is_dir() and not each.name.startswith(".")]
    except OSError:
        return []


def _show_runs(request: Request) -> Response:
    """The runs of an evaluation whose folder is not there, a row for each policy."""
    name = request.path_params["id"]
    by_policy: dict[str, list[RunSummary]] = {}
    for run in request.app.state.index.runs():
        if run.origin.get("evaluation") == name:
            by_policy.setdefault(run.by, []).append(run)
    if not by_policy:
        raise HTTPException(404, f"The journal has no run of an evaluation {name!r}.")
    rows = [(policy, Row(runs=runs)) for policy, runs in sorted(by_policy.items())]
    return page(request, "evaluation_runs.html", name=name, rows=rows)


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
