"""The pages of one run: conversation, graph and time; one step with what its worker saw; texts and exports."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from wfdsl.api import analyze, dumps
from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import Completion, completion_of, rounds_inside
from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.journal import Attempt
from wfdsl.interpreter.journal_reading import attempts_of
from wfdsl.interpreter.record import Run, as_unicode
from wfdsl.language.check import CheckConfig
from wfdsl.language.workflow import Labels, Workflow
from wfdsl.protocols import Message
from wfdsl.render.html import StepPath
from wfdsl.render.pictures import picture_of, to_html
from wfdsl.render.run_page import Unlogged, facts_of_step, said_in, sections_of
from wfdsl.viewer.completion_text import lines_of
from wfdsl.viewer.graph import MOST_NODES, graph_of_run
from wfdsl.viewer.markdown import markdown_of
from wfdsl.viewer.page import Excerpts, page
from wfdsl.viewer.places import Place, places
from wfdsl.viewer.redo_page import can_redo
from wfdsl.viewer.runs import facts_in, place_in, run_in
from wfdsl.viewer.timeline import timeline_of

VIEWS: Final = ("conversation", "graph", "time")
_MOST_OF_STEP: Final = 200_000
"""The most characters that the page of a step shows of one text. Our choice."""


def show_run(request: Request) -> Response:
    """A run in one of its views."""
    summary, run = run_in(request)
    view = request.query_params.get("view", VIEWS[0])
    if view not in VIEWS:
        raise HTTPException(404, f"A run is shown as {', '.join(VIEWS)}, not as {view!r}.")
    return page(
        request,
        "run.html",
        run=run,
        summary=summary,
        version=request.app.state.index.version(run.id),
        view=view,
        views=VIEWS,
        facts=facts_in(request, run),
        excerpt=Excerpts(2 + 2 * sum(1 for _ in places(run))),
        problem=request.app.state.redoing.problems.get(run.id, ""),
        **_VIEWS[view](request, run),
    )


def _conversation(request: Request, run: Run) -> dict[str, Any]:
    # A run that has not ended by itself has no log of its rounds: what was written is in the journal.
    unlogged = {} if run.finished is not None else _completions(attempts_of(request.app.state.index.journal, run.id))
    return {
        "question": said_in(run.question),
        "sections": sections_of(run, unlogged),
        "texts": request.app.state.index.texts(run.id),
        "lines_of": lines_of,
    }


def _completions(attempts: Iterable[Attempt]) -> Unlogged:
    """What Conductors wrote, from the replies in the journal, read as it is when a run is put together from them."""
    found: dict[StepPath, list[Completion]] = {}
    for each in attempts:
        if each.path[-1] == OWN_STEP and each.status == "finished" and each.reply is not None:
            checked = analyze(each.reply.text, CheckConfig(profile="lenient", max_steps=None, recursion=True))
            found.setdefault(each.path[:-1], []).append(completion_of(each.reply, checked))
    return found


def _graph(request: Request, run: Run) -> dict[str, Any]:
    address = _address(request, run)
    graph = graph_of_run(run, request.query_params, lambda step: f"{address}/steps/{step}")
    return {"graph": graph, "notes": picture_of(run).notes, "most": MOST_NODES}


def _timeline(request: Request, run: Run) -> dict[str, Any]:
    return {"timeline": timeline_of(run, attempts_of(request.app.state.index.journal, run.id), time.time())}


_VIEWS: Final[dict[str, Callable[[Request, Run], dict[str, Any]]]] = {
    "conversation": _conversation,
    "graph": _graph,
    "time": _timeline,
}


def _address(request: Request, run: Run) -> str:
    return f"{request.scope['root_path']}/runs/{quote(run.id)}"


def show_step(request: Request) -> Response:
    """One step: what its worker saw, each visible reply with the step that it is from, and what it answered."""
    summary, run = run_in(request)
    place = place_in(request, run)
    return page(
        request,
        "step.html",
        run=run,
        summary=summary,
        version=request.app.state.index.version(run.id),
        place=place,
        facts=list(facts_of_step(place.step)),
        messages=_sources(place),
        cut=Excerpts(len(place.step.messages) + 4, most=_MOST_OF_STEP),
        copies=_copies(place),
        can_redo=summary.status != "running" and can_redo(run, place),
    )


def _sources(place: Place) -> list[tuple[int, Message, Place | None]]:
    """What the worker was sent: the number of each message, the message, and the step that wrote it.

    The messages end with a pair for each visible step, in order, and the step's own subtask.
    """
    messages = place.step.messages
    found: list[tuple[int, Message, Place | None]] = [(at, message, None) for at, message in enumerate(messages)]
    asked = next((at for at, message in enumerate(messages) if "tool_calls" in message), len(messages))
    first = asked - 1 - 2 * len(place.seen)
    for number, seen in enumerate(place.seen):
        at = first + 2 * number + 1
        if 0 < at < len(messages) and messages[at]["content"] == seen.step.response:
            found[at] = (at, messages[at], seen)
    return found


def _copies(place: Place) -> list[Place]:
    """The steps that were given the same: worker, subtask and access."""
    workflow = place.run.workflow
    own = workflow[place.step.step]
    same = [index for index, step in enumerate(workflow) if step == own]
    return [place.beside(index) for index in same] if len(same) > 1 else []


_PART: Final = re.compile(r"question|answer|message|reply|subtask|thinking|error")


def show_text(request: Request) -> Response:
    """One whole text of a run, as text: of a step its reply, subtask, thinking, error or a message that it saw."""
    _, run = run_in(request)
    part, number = request.query_params.get("part", ""), request.query_params.get("number", "0")
    if not _PART.fullmatch(part) or not re.fullmatch(r"[0-9]{1,6}", number):
        raise HTTPException(404, f"There is no text {part!r}.")
    text = _text(request, run, part, int(number))
    if text is None:
        raise HTTPException(404, f"There is no such {part}.")
    return PlainTextResponse(as_unicode(text))


def _text(request: Request, run: Run, part: str, number: int) -> str | None:
    if "step" not in request.path_params:
        question = said_in(run.question) if part == "question" else ()
        return run.answer if part == "answer" else question[number].text if number < len(question) else None
    place = place_in(request, run)
    step = place.step
    if part == "message":
        return step.messages[number]["content"] if number < len(step.messages) else None
    texts = {"reply": step.response, "subtask": place.subtask, "thinking": step.thinking, "error": step.error}
    return texts.get(part)


def export(request: Request) -> Response:
    """A run to be taken elsewhere: Markdown, JSON, a workflow file, or one page of HTML that needs nothing else."""
    _, run = run_in(request)
    form = request.path_params["form"]
    if form not in _EXPORTS:
        raise HTTPException(404, f"A run is exported as {', '.join(_EXPORTS)}, not as {form!r}.")
    write, media_type = _EXPORTS[form]
    name = re.sub(r"[^A-Za-z0-9._-]", "_", run.id)
    kind = "attachment" if form == "html" or "download" in request.query_params else "inline"
    headers = {"content-disposition": f'{kind}; filename="{name}.{form}"'}
    return Response(as_unicode(write(run)), media_type=media_type, headers=headers)


def workflow_in(run: Run) -> Workflow:
    """The workflow that gave the answer: of a Conductor's run the one of its last round.

    Raises:
        HTTPException: no workflow ran.
    """
    if run.workflow != ROOT_WORKFLOW:
        return replace(run.workflow, labels=Labels(run.names))
    workflows = [inside.workflow for _, inside, _ in rounds_inside(run.steps[0])]
    if not workflows:
        raise HTTPException(404, f"No workflow ran in run {run.id}.")
    return workflows[-1]


_EXPORTS: Final[dict[str, tuple[Callable[[Run], str], str]]] = {
    "md": (markdown_of, "text/plain; charset=utf-8"),
    "json": (lambda run: run.to_json(indent=2), "application/json"),
    "wf": (lambda run: dumps(workflow_in(run), form="wf"), "text/plain; charset=utf-8"),
    "html": (to_html, "text/html; charset=utf-8"),
}
