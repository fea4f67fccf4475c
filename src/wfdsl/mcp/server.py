"""The tools of `wfdsl mcp`, thin adapters over the public functions; no tool runs anything without a cap in dollars."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from wfdsl._version import __version__
from wfdsl.errors import UsageError, WfdslError
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.events import Listener, RunStarted, StepFinished, StepStarted
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import run_of
from wfdsl.interpreter.record import Run, RunEnded
from wfdsl.interpreter.redoing import redo
from wfdsl.interpreter.running import run
from wfdsl.interpreter.worker_profile import estimate
from wfdsl.language.codes import CODES
from wfdsl.language.diagnostics import Diagnostic
from wfdsl.language.file_printer import format_file
from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.source import Source
from wfdsl.language.workflow import Workflow
from wfdsl.mcp.folder import Folder
from wfdsl.render.pictures import to_mermaid, to_svg, to_terminal
from wfdsl.workers.pool import Pool, pool_names

Result: TypeAlias = dict[str, Any]
File: TypeAlias = Annotated[str | None, Field(description="a workflow file, relative to the server's folder")]
Text: TypeAlias = Annotated[str | None, Field(description="a workflow's text, instead of a file")]
PoolName: TypeAlias = Annotated[
    str, Field(description="the workers: a pool's name, a pool file, or models: openai:gpt-5,openai:gpt-5-mini")
]
Params: TypeAlias = Annotated[dict[str, str | int | float] | None, Field(description="values of the parameters")]
Question: TypeAlias = Annotated[str, Field(min_length=1, description="what the workflow is asked")]
Cap: TypeAlias = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False, strict=True, description="the most US dollars to spend; the user decides on it"),
]
RunId: TypeAlias = Annotated[str, Field(min_length=1, description="the id of a run of this folder, or how it begins")]

_DRAWN: Final = {"mermaid": to_mermaid, "svg": to_svg, "terminal": lambda value: str(to_terminal(value))}
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_PAYS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
_INSTRUCTIONS: Final = """\
Workflows of language models: a .wf file says which worker does which subtask and which earlier replies it sees. Read \
the resource wfdsl://language before you write one. Then check it, show the user the picture and the price, ask how \
many dollars may be spent, and only then run it with that cap."""
_HERE: Final = Path(__file__).resolve().parent
_PLACES: Final = (_HERE.parents[2] / "docs" / "skill" / "SKILL.md", _HERE / "SKILL.md")
"""In a checkout and in a wheel, as for the grammars."""


def build(path: Path, journal: Journal) -> MCPServer:
    """The server of a folder; what runs is kept in the journal."""
    server = MCPServer("wfdsl", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")
    tools = Tools(Folder(path.resolve()), journal)
    for reading in (tools.list, tools.check, tools.explain, tools.draw, tools.price, tools.status):
        server.add_tool(reading, annotations=_READS)
    for paying in (tools.run, tools.redo):
        server.add_tool(paying, annotations=_PAYS)
    server.resource("wfdsl://language", mime_type="text/markdown")(language)
    server.resource("wfdsl://pools", mime_type="application/json")(pools)
    return server


def language() -> str:
    """The language on one page, and how to work with it."""
    return next(place for place in _PLACES if place.is_file()).read_text(encoding="utf-8")


def pools() -> dict[str, list[str]]:
    """The pools that have a name, each with its workers."""
    return {name: list(Pool.load(name).names) for name in pool_names()}


class Tools:
    """The tools of one folder. Their docstrings are what the agent reads."""

    def __init__(self, folder: Folder, journal: Journal) -> None:
        self._folder = folder
        self._journal = journal

    def list(self) -> Result:
        """List the workflow files of the folder, and the names of pools."""
        return {"folder": str(self._folder.path), "workflows": self._folder.workflows(), "pools": list(pool_names())}

    def check(
        self, *, file: File = None, text: Text = None, pool: PoolName | None = None, params: Params = None
    ) -> Result:
        """Check a workflow without running it: all problems with their places and cures, and its canonical text."""
        with _told():
            found = None if pool is None else self._folder.pool(pool)
            checked = self._folder.read(file, text, found, params)
            canonical = format_file(read_workflow_file(checked.source)[0]) if checked.ok else None
        return {
            "ok": checked.ok,
            "diagnostics": [_diagnostic(each, checked.source) for each in checked.diagnostics],
            "text": canonical,
        }

    def explain(self, code: str) -> Result:
        """Explain a diagnostic's code, with an example and its correction."""
        with _told():
            if code not in CODES:
                raise UsageError(f"there is no code {code!r}; `check` names the codes")
            found = CODES[code]
        return {name: getattr(found, name) for name in ("name", "summary", "explanation", "wrong", "right")}

    def draw(
        self,
        *,
        file: File = None,
        text: Text = None,
        run_id: RunId | None = None,
        format: Literal["mermaid", "svg", "terminal"] = "mermaid",  # noqa: A002  (the name of the argument)
    ) -> str:
        """Draw a workflow, or a run with the state of each step."""
        with _told():
            if run_id is None:
                return _DRAWN[format](self._folder.read(file, text).raise_for_errors())
            if file is not None or text is not None:
                raise UsageError("give either a run or a workflow")
            whole, _ = self._folder.run(run_id, self._journal)
            return _DRAWN[format](run_of(self._journal.path, whole))

    def price(
        self,
        *,
        question: Question,
        pool: PoolName,
        file: File = None,
        text: Text = None,
        params: Params = None,
    ) -> Result:
        """Say the most that a run would cost, in all and for each step; nothing is asked or paid."""
        with _told():
            workers, workflow = self._asked(pool, file, text, params)
            require_runnable(workflow, workers, 0)
            found = estimate(workflow, question, workers)
        names = workflow.labels.names if workflow.labels else None
        steps = [
            {"step": names[step.step] if names else str(step.step), "worker": step.worker_name, "usd_at_most": step.usd}
            for step in found.steps
        ]
        unknown = sorted({step.worker_name for step in found.steps if step.usd is None})
        return {"calls": found.calls, "usd_at_most": found.usd, "steps": steps, "without_a_price": unknown}

    async def run(
        self,
        *,
        question: Question,
        pool: PoolName,
        cap_usd: Cap,
        context: Context,
        file: File = None,
        text: Text = None,
        params: Params = None,
    ) -> Result:
        """Run a workflow on a question, within a cap; ask the user for the cap. Progress is reported step by step."""
        with _told():
            workers, workflow = self._asked(pool, file, text, params)
        origin = {"folder": str(self._folder.path), "file": file or "text", "pool": pool}

        def started(on_event: Listener) -> Awaitable[Run]:
            return run(
                workflow,
                question,
                workers,
                budget=Budget(usd=cap_usd),
                journal=self._journal,
                origin=origin,
                on_event=on_event,
            )

        return await _followed(started, context)

    def status(self, run_id: RunId) -> Result:
        """Say how a run is or ended: its answer, the state and reply of each step, cost and share of each worker."""
        with _told():
            whole, _ = self._folder.run(run_id, self._journal)
            found = run_of(self._journal.path, whole)
        shown = ("worker_name", "status", "response", "error")
        steps = [
            {"step": found.name_of(step.step), **{name: getattr(step, name) for name in shown}} for step in found.steps
        ]
        return {**_result(found), "steps": steps}

    async def redo(
        self,
        *,
        run_id: RunId,
        step: Annotated[str, Field(description="the step's name or index")],
        cap_usd: Cap,
        context: Context,
        subtask: Annotated[str | None, Field(description="what the step is to do instead")] = None,
        worker: Annotated[str | None, Field(description="the name of the worker that is to do it")] = None,
    ) -> Result:
        """Ask one step of a run again, and those that depend on it, in a new run; the other replies cost nothing."""
        with _told():
            whole, request = self._folder.run(run_id, self._journal)
            workers = self._folder.pool(request.origin["pool"])
            index = None if worker is None else workers.find(worker)
            if worker is not None and index is None:
                raise UsageError(f"there is no worker {worker!r}: the pool has {', '.join(workers.names)}")

        def started(on_event: Listener) -> Awaitable[Run]:
            return redo(
                whole,
                step,
                workers,
                journal=self._journal,
                subtask=subtask,
                worker=index,
                budget=Budget(usd=cap_usd),
                on_event=on_event,
            )

        return await _followed(started, context)

    def _asked(self, pool: str, file: str | None, text: str | None, params: Params) -> tuple[Pool, Workflow]:
        """The workers of this name, and the workflow for them."""
        workers = self._folder.pool(pool)
        workflow = self._folder.read(file, text, workers, params).raise_for_errors().workflow
        if workflow is None:
            raise UsageError("the text holds three empty lists, which are not a workflow without a previous round")
        return workers, workflow


@contextmanager
def _told() -> Iterator[None]:
    """What the caller did wrong is told to the agent; anything else is a crash, which the SDK hides and logs."""
    try:
        yield
    except WfdslError as error:
        raise ToolError(str(error)) from error


def _diagnostic(found: Diagnostic, source: Source) -> Result:
    line, column = source.position(found.span.start)
    said = {name: getattr(found, name) for name in ("code", "severity", "message", "help")}
    return {**said, "line": line, "column": column}


async def _followed(start: Callable[[Listener], Awaitable[Run]], context: Context) -> Result:
    """Run, and report each step that starts or ends; a run without an answer is a result, too."""
    queue: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.ensure_future(start(queue.put_nowait))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    names: tuple[str, ...] | None = None
    total, done = 0, 0
    try:
        while (event := await queue.get()) is not None:
            if isinstance(event, RunStarted) and not event.path:
                names, total = event.names, len(event.workflow) - len(event.pruned)
            if isinstance(event, StepStarted | StepFinished) and len(event.path) == 1:
                name = names[event.path[0]] if names else f"step {event.path[0]}"
                done += isinstance(event, StepFinished)
                news = event.record.status if isinstance(event, StepFinished) else f"asks {event.worker_name}"
                await context.report_progress(done, total, f"{name}: {news}")
        with _told():
            try:
                return _result(await task)
            except RunEnded as ended:
                return _result(ended.run)
    finally:
        task.cancel()
        await asyncio.wait([task])


def _result(found: Run) -> Result:
    """A run as the agent reads it."""
    workers: dict[str, Result] = {}
    for step in found.steps:
        if step.started is not None:
            one = workers.setdefault(step.worker_name, {"calls": 0, "tokens": 0, "usd": 0.0})
            one["calls"] += 1
            one["tokens"] += step.usage.total_tokens
            one["usd"] += step.paid_usd or 0.0
    paid = sum(one["usd"] for one in workers.values())
    return {
        "run_id": found.id,
        "status": found.status,
        "answer": found.answer,
        "error": found.error,
        "usd": found.paid_usd,
        "seconds": found.seconds,
        "workers": [
            {"worker": name, **one, "share": one["usd"] / paid if paid else 0.0} for name, one in workers.items()
        ],
    }
