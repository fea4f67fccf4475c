"""The pages as one application, below `/view`: their routes, their errors, and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from wfdsl.errors import JournalFailure, UsageError
from wfdsl.experiment import Experiment
from wfdsl.language.diagnostics.workflow_error import WorkflowError
from wfdsl.viewer.access import Access, key_beside
from wfdsl.viewer.changes import RunIndex, event_stream
from wfdsl.viewer.compare import compare
from wfdsl.viewer.evaluation import show_evaluation
from wfdsl.viewer.page import add_templates, page, static_file
from wfdsl.viewer.playground import playground
from wfdsl.viewer.pools import OfferedPools
from wfdsl.viewer.redo_page import Redoing, redo_step
from wfdsl.viewer.run_list import show_runs
from wfdsl.viewer.run_page import export, show_run, show_step, show_text
from wfdsl.viewer.runs import RunRecords

ROOT: Final = "/view"
"""Where the pages are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Pages about something else than runs, such as evaluations, that have a place in the navigation."""

    title: str
    """What the navigation calls them."""
    path: str
    """The address of the first of them, below the root."""
    routes: Sequence[BaseRoute]
    templates: Path | None = None
    """The folder of their templates, which extend `base.html`."""


def pages_of_others(folders: Sequence[Path]) -> list[Pages]:
    """The pages that installed packages bring, by the entry-point group `wfdsl.viewer`: each names a function that
    takes the folders in which it may look for what it shows, and gives a `Pages`.
    """
    return [found.load()(folders) for found in sorted(entry_points(group="wfdsl.viewer"), key=lambda each: each.name)]


class Viewer:
    """The pages of one journal."""

    def __init__(self, journal: Path, more: Iterable[Pages] = (), *, experiment: Experiment | None = None) -> None:
        """Make the pages of a journal, which need not be there yet.

        `more` are pages about something else. The experiment's pool has the workers that the playground runs on, and
        that steps are asked again with; without one, these are those of the run, found again by its pool's name. Its
        options of a Conductor are those with which rounds are continued.

        Raises:
            UsageError: the key to the pages cannot be read or written.
        """
        self.index = RunIndex(journal)
        self._key = key_beside(journal)
        self._experiment = experiment or Experiment()
        self._pools = OfferedPools(experiment or Experiment())
        writing = [Route("/playground", playground, methods=["GET", "POST"])]
        self._pages = (
            Pages(title="Runs", path="/", routes=_routes_of_runs()),
            Pages(title="Playground", path="/playground", routes=writing),
            *more,
        )

    @property
    def path(self) -> str:
        """The address of the first page on its host, with the key."""
        return f"{ROOT}/?key={self._key}"

    def mount(self) -> Mount:
        """The route of all pages."""
        for pages in self._pages:
            if pages.templates is not None:
                add_templates(pages.templates)
        # Pages that others bring come first: they may know more of what an address names.
        routes = [route for pages in reversed(self._pages) for route in pages.routes]
        app = Starlette(routes=routes, exception_handlers=_HANDLERS)
        app.state.viewer = self
        app.state.index = self.index
        app.state.redoing = Redoing(self.index.journal, self._experiment)
        app.state.records = RunRecords(self.index)
        app.state.pools = self._pools
        app.state.key = self._key
        app.state.nav = tuple((pages.title, pages.path) for pages in self._pages)
        app.add_middleware(Access, key=self._key)
        return Mount(ROOT, app=app)

    def close(self) -> None:
        """End what waits for news, so that the server can end."""
        self.index.close()


def _routes_of_runs() -> list[BaseRoute]:
    return [
        Route("/", show_runs),
        Route("/runs/{id:path}/steps/{step}/text", show_text),
        Route("/runs/{id:path}/steps/{step}/redo", redo_step, methods=["GET", "POST"]),
        Route("/runs/{id:path}/steps/{step}", show_step),
        Route("/runs/{id:path}/text", show_text),
        Route("/runs/{id:path}/export.{form}", export),
        Route("/runs/{id:path}", show_run),
        Route("/compare", compare),
        Route("/evaluations/{id}", show_evaluation),
        Route("/events", _events),
        Route("/static/{name}", static_file),
    ]


async def _events(request: Request) -> Response:
    return event_stream(request.app.state.index, request)


def _http_error(request: Request, error: HTTPException) -> Response:
    known = {404: "There is no such page.", 405: "This page takes another method."}
    detail = known.get(error.status_code, "") if error.detail in ("Not Found", "Method Not Allowed") else error.detail
    return page(request, "error.html", status=error.status_code, message=detail)


def _usage_error(request: Request, error: UsageError | WorkflowError) -> Response:
    return page(request, "error.html", status=400, message=str(error))


def _journal_error(request: Request, error: JournalFailure) -> Response:
    return page(request, "error.html", status=500, message=str(error))


_HANDLERS: Final[Mapping[Any, Any]] = {
    HTTPException: _http_error,
    UsageError: _usage_error,
    WorkflowError: _usage_error,
    JournalFailure: _journal_error,
}
