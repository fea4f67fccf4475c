"""The pages as one application, below `/view`: their routes, their errors, and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from wfdsl.errors import JournalFailure, UsageError
from wfdsl.experiment import Experiment
from wfdsl.language.diagnostics import WorkflowError
from wfdsl.viewer.access import Access, key_beside
from wfdsl.viewer.changes import RunIndex, event_stream
from wfdsl.viewer.compare import compare
from wfdsl.viewer.evaluations import Evaluations
from wfdsl.viewer.page import page, static_file
from wfdsl.viewer.playground import playground
from wfdsl.viewer.redo_page import Redoing, redo_step
from wfdsl.viewer.run_list import show_runs
from wfdsl.viewer.run_page import export, show_run, show_step, show_text

ROOT: Final = "/view"
"""Where the pages are."""


class Viewer:
    """The pages of one journal."""

    def __init__(self, journal: Path, folders: Sequence[Path] = (), *, experiment: Experiment | None = None) -> None:
        """Make the pages of a journal, which need not be there yet.

        `folders` may hold evaluations. The experiment's pool has the workers that the playground runs on, and
        that steps are asked again with; without one, these are those of the run, found again by its pool's name. Its
        options of a Conductor that are not the defaults replace the run's.

        Raises:
            UsageError: the key to the pages cannot be read or written.
        """
        self.index = RunIndex(journal)
        self._key = key_beside(journal)
        self._experiment = experiment or Experiment()
        self._evaluations = Evaluations(folders)

    @property
    def path(self) -> str:
        """The address of the first page on its host, with the key."""
        return f"{ROOT}/?key={self._key}"

    def mount(self) -> Mount:
        """The route of all pages."""
        app = Starlette(routes=[*_ROUTES, *self._evaluations.routes], exception_handlers=_HANDLERS)
        app.state.viewer = self
        app.state.index = self.index
        app.state.redoing = redoing = Redoing(self.index.journal, self._experiment)
        self.index.live.append(lambda run_id: redoing.events.get(run_id, ()))
        app.state.experiment = self._experiment
        app.state.key = self._key
        app.state.nav = (("Runs", "/"), ("Playground", "/playground"), ("Evaluations", "/evaluations"))
        app.add_middleware(Access, key=self._key)
        return Mount(ROOT, app=app)

    def close(self) -> None:
        """End what waits for news, so that the server can end."""
        self.index.close()


def _http_error(request: Request, error: HTTPException) -> Response:
    known = {404: "There is no such page.", 405: "This page takes another method."}
    detail = known.get(error.status_code, "") if error.detail in ("Not Found", "Method Not Allowed") else error.detail
    return page(request, "error.html", status=error.status_code, message=detail)


def _usage_error(request: Request, error: UsageError | WorkflowError) -> Response:
    return page(request, "error.html", status=400, message=str(error))


def _journal_error(request: Request, error: JournalFailure) -> Response:
    return page(request, "error.html", status=500, message=str(error))


_ROUTES: Final = (
    Route("/playground", playground, methods=["GET", "POST"]),
    Route("/", show_runs),
    Route("/runs/{id:path}/steps/{step}/text", show_text),
    Route("/runs/{id:path}/steps/{step}/redo", redo_step, methods=["GET", "POST"]),
    Route("/runs/{id:path}/steps/{step}", show_step),
    Route("/runs/{id:path}/text", show_text),
    Route("/runs/{id:path}/export.{form}", export),
    Route("/runs/{id:path}", show_run),
    Route("/compare", compare),
    Route("/events", event_stream),
    Route("/static/{name}", static_file),
)
_HANDLERS: Final[Mapping[Any, Any]] = {
    HTTPException: _http_error,
    UsageError: _usage_error,
    WorkflowError: _usage_error,
    JournalFailure: _journal_error,
}
