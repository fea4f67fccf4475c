"""The playground: a text in either form is checked and drawn as it is typed, and run on a pool.

Nothing of it is kept: the page sends its text with each request, and the address holds it in its fragment, which
browsers do not send. Only a run is written to the journal, as any other run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from wfdsl.api import Checked, Form, analyze, form_of
from wfdsl.errors import UsageError, WfdslError
from wfdsl.language.diagnostics import summary
from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.source import Source
from wfdsl.render.pictures import picture_of
from wfdsl.render.svg import svg_of
from wfdsl.render.text import counted
from wfdsl.viewer.access import form_token, sent_fields
from wfdsl.viewer.completion_text import checked_lines
from wfdsl.viewer.graph import MOST_NODES
from wfdsl.viewer.page import page, price_field
from wfdsl.viewer.playground_run import Plan, chosen_pool, plan_of, pool_labels, start_run
from wfdsl.workers.pool import Pool

_LONGEST: Final = 100_000
"""Characters of a text that is checked while it is typed. Our choice; `wfdsl check` reads longer ones."""
_PARAMETER: Final = "param."
_FORMS: Final[dict[Form, str]] = {"wf": "Workflow file (.wf)", "completion": "Completion"}


class Example(NamedTuple):
    """A text to start from."""

    name: str
    text: str
    form: Form


class Parameter(NamedTuple):
    """A parameter of a workflow file."""

    name: str
    default: str
    value: str
    """What was given instead of the default; may be empty."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What is in the form, and what was found in it."""

    text: str
    form: Form
    checked: Checked | None = None
    """None: there is nothing to check, or it cannot be checked."""
    parameters: Sequence[Parameter] = ()
    problem: str = ""
    """Why what was asked for could not be done."""
    pool: Pool | None = None
    """What it is checked against and runs on."""
    pool_name: str | None = None
    """With what `Pool.load` finds the pool again."""
    question: str = ""
    plan: Plan | None = None
    """What running it takes."""

    @property
    def outcome(self) -> str:
        """What was found, in one line."""
        if self.checked is None:
            return ""
        counts = summary(self.checked.diagnostics)
        if self.checked.workflow is None:
            return counts or "three empty lists, which keep the previous response"
        return f"{counted(len(self.checked.workflow), 'step')}{f', {counts}' if counts else ''}"


@cache
def examples() -> tuple[Example, ...]:
    """The texts to start from, in the order of their names; completions last."""
    found = [
        Example(path.stem.replace("-", " "), path.read_text("utf-8"), form_of(path))
        for path in sorted((Path(__file__).parent / "examples").iterdir())
    ]
    return tuple(sorted(found, key=lambda each: each.form != "wf"))


async def playground(request: Request) -> Response:
    """The form with an example; sent by POST, with what was found in its text."""
    if request.method == "POST":
        fields = await sent_fields(request)
    else:
        fields = await run_in_threadpool(_example, request.query_params.get("example", ""))
    if fields.get("action") == "run":
        return await _run(request, fields)
    return await run_in_threadpool(_answer, request, fields)


async def _run(request: Request, fields: Mapping[str, str]) -> Response:
    """The start of a run whose price is the one that was shown; else the price that it has now."""
    if not (draft := await run_in_threadpool(_draft, request, fields)).plan:
        told = draft.problem or "Nothing was run: that takes a workflow without errors, a question and a pool."
        return await run_in_threadpool(_shown, request, replace(draft, problem=told), fields, status=400)
    if fields.get("price") != price_field(draft.plan.estimate.usd):
        told = "The price is not what it was. This is the price now; nothing was run."
        return await run_in_threadpool(_shown, request, replace(draft, problem=told), fields, status=409)
    try:
        run_id = await start_run(draft.plan, request.app.state.redoing)
    except WfdslError as error:
        told = f"Nothing was run: {error}"
        return await run_in_threadpool(_shown, request, replace(draft, problem=told), fields, status=400)
    return RedirectResponse(f"{request.scope['root_path']}/runs/{quote(run_id)}", 303)


def _example(name: str) -> dict[str, str]:
    found = next((each for each in examples() if name in ("", each.name)), None)
    if found is None:
        raise HTTPException(404, f"There is no example {name!r}.")
    return {"text": found.text, "form": found.form}


def _answer(request: Request, fields: Mapping[str, str]) -> Response:
    draft = _draft(request, fields)
    return _shown(request, draft, fields, status=413 if len(draft.text) > _LONGEST else 200)


def _draft(request: Request, fields: Mapping[str, str]) -> Draft:
    """What is in the form.

    Raises:
        HTTPException: there is no such form.
    """
    text, form = fields.get("text", ""), fields.get("form", "wf")
    if form not in _FORMS:
        raise HTTPException(400, f"A text is in the form {' or '.join(_FORMS)}, not {form!r}.")
    draft = Draft(text, form, question=fields.get("question", ""))
    try:
        pool, pool_name = chosen_pool(request.app.state.experiment, fields.get("pool", ""))
    except UsageError as error:
        return replace(draft, problem=str(error))
    if len(text) > _LONGEST:
        told = f"The text has {len(text):,} characters. The playground takes at most {_LONGEST:,}: use wfdsl check."
        return replace(draft, problem=told)
    return _filled(replace(draft, pool=pool, pool_name=pool_name), fields)


def _shown(request: Request, draft: Draft, fields: Mapping[str, str], *, status: int = 200) -> Response:
    checked = draft.checked
    svg, nodes = (None, 0) if checked is None else _drawn(checked, is_asked=fields.get("action") == "draw")
    return page(
        request,
        "playground.html",
        status=status,
        draft=draft,
        forms=_FORMS,
        examples=examples(),
        lines=checked_lines(checked, draft.form) if checked is not None and checked.diagnostics else [],
        svg=svg,
        nodes=nodes,
        most=MOST_NODES,
        pools=pool_labels(request.app.state.experiment),
        chosen_pool=fields.get("pool", ""),
        token=form_token(request.app.state.key),
    )


def _filled(draft: Draft, fields: Mapping[str, str]) -> Draft:
    """The draft with its text checked as `wfdsl run` checks it, with the parameters that the form gives."""
    text, form = draft.text, draft.form
    if not text.strip():
        return draft
    draft = replace(draft, parameters=_parameters(text, fields) if form == "wf" else ())
    given = {each.name: each.value for each in draft.parameters if each.value.strip()}
    try:
        checked = analyze(text, form=form, params=given, name="text", pool=draft.pool, profile="lenient")
        draft = replace(draft, checked=checked)
        return replace(draft, plan=plan_of(checked, draft.question, draft.pool, draft.pool_name))
    except UsageError as error:
        return replace(draft, problem=str(error))


def _parameters(text: str, fields: Mapping[str, str]) -> tuple[Parameter, ...]:
    tree, _ = read_workflow_file(Source(text))
    return tuple(
        Parameter(name, str(default), fields.get(_PARAMETER + name, "")) for name, default in tree.params.items()
    )


def _drawn(checked: Checked, *, is_asked: bool) -> tuple[Markup | None, int]:
    """The picture, unless it is large and was not asked for, and how many nodes it has."""
    if checked.workflow is None:
        return None, 0
    panel = picture_of(checked)
    nodes = len(panel.drawing.cards) if panel.drawing is not None else 0
    if nodes > MOST_NODES and not is_asked:
        return None, nodes
    return Markup(svg_of(panel._replace(title="", notes=()))), nodes
