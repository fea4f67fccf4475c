"""What the journal knows of an evaluation: its runs by policy. Accuracies need the evaluation's folder."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from wfdsl.interpreter.journal_reading import RunSummary
from wfdsl.viewer.page import page
from wfdsl.viewer.run_list import Row


def show_evaluation(request: Request) -> Response:
    """The runs of an evaluation, a row for each policy."""
    name = request.path_params["id"]
    by_policy: dict[str, list[RunSummary]] = {}
    for run in request.app.state.index.runs():
        if run.origin.get("evaluation") == name:
            by_policy.setdefault(run.by, []).append(run)
    if not by_policy:
        raise HTTPException(404, f"The journal has no run of an evaluation {name!r}.")
    rows = [(policy, Row(runs=runs)) for policy, runs in sorted(by_policy.items())]
    return page(request, "evaluation_runs.html", name=name, rows=rows)
