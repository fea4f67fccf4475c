"""The run record as JSON: one format with a version number, written and read in this file only."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wfdsl.errors import UsageError
from wfdsl.interpreter.record import Charge, LostCall, Run, RunStatus, StepRecord, StepState
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Finish, Message, Usage

if TYPE_CHECKING:
    from wfdsl.interpreter.context import Question

FORMAT = "wfdsl-run"
VERSION = 1
"""Raised by one whenever a reader of the version before could misread a record."""

_Cost = float | None
_Index = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class _MessageModel(_Strict):
    role: Literal["system", "user", "assistant"]
    content: str


class _UsageModel(_Strict):
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cached_tokens: int


class _WorkflowStepModel(_Strict):
    worker: int | str
    subtask: str
    access: Literal["all"] | list[_Index]
    depth: int | None = None


class _StepModel(_Strict):
    step: _Index
    worker: int
    worker_name: str
    messages: list[_MessageModel]
    response: str | None
    status: StepState
    finish: Finish | None
    started: float | None
    finished: float | None
    queue_s: float
    retries: int
    retry_s: float
    usage: _UsageModel
    paid_usd: _Cost
    list_usd: _Cost
    model: str
    replayed: bool
    answered_by: int | None
    error: str
    nested: list[_RunModel]


class _LostModel(_Strict):
    path: list[int]
    worker_name: str
    started: float
    tokens: int
    usd: float


class _ChargeModel(_Strict):
    calls: int
    tokens: int
    usd: float


class _RunModel(_Strict):
    format: Literal["wfdsl-run"]
    version: Literal[1]
    id: str
    status: RunStatus
    answer: str | None
    error: str
    question: str | list[_MessageModel]
    workflow: list[_WorkflowStepModel]
    names: list[str] | None
    pool: str
    settings: dict[str, Any]
    started: float
    finished: float | None
    usage: _UsageModel
    paid_usd: _Cost
    list_usd: _Cost
    charged: _ChargeModel | None
    steps: list[_StepModel]
    lost: list[_LostModel]
    versions: dict[str, str]


def run_to_dict(run: Run) -> dict[str, Any]:
    """A run as plain values that JSON can hold."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "id": run.id,
        "status": run.status,
        "answer": run.answer,
        "error": run.error,
        "question": _question_out(run.question),
        "workflow": workflow_to_list(run.workflow),
        "names": None if run.names is None else list(run.names),
        "pool": run.pool,
        "settings": dict(run.settings),
        "started": run.started,
        "finished": run.finished,
        "usage": asdict(run.usage),
        "paid_usd": run.paid_usd,
        "list_usd": run.list_usd,
        "charged": None if run.charged is None else run.charged._asdict(),
        "steps": [_step_out(step) for step in run.steps],
        "lost": [{**asdict(lost), "path": list(lost.path)} for lost in run.lost],
        "versions": dict(run.versions),
    }


def run_to_json(run: Run, *, indent: int | None = None) -> str:
    """A run as JSON text; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    text = json.dumps(run_to_dict(run), ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def run_from_json(text: str | bytes) -> Run:
    """Read a run; a record of a later version, or anything else, is refused in one line.

    Raises:
        UsageError: the text is no run record that this version can read.
    """
    try:
        return _run_in(_RunModel.model_validate_json(text))
    except ValidationError as error:
        raise UsageError(_refusal(text, error)) from error


def workflow_to_list(workflow: Workflow) -> list[dict[str, Any]]:
    """A workflow's steps as plain values."""
    return [
        {
            "worker": step.worker,
            "subtask": step.subtask,
            "access": ALL if step.access == ALL else list(step.access),
            "depth": step.depth,
        }
        for step in workflow.steps
    ]


def workflow_from_list(steps: list[dict[str, Any]]) -> Workflow:
    """The inverse of `workflow_to_list`."""
    return _workflow_in([_WorkflowStepModel.model_validate(step) for step in steps])


def _step_out(step: StepRecord) -> dict[str, Any]:
    out = {name: getattr(step, name) for name in _StepModel.model_fields}
    out["messages"] = [dict(message) for message in step.messages]
    out["usage"] = asdict(step.usage)
    out["nested"] = [run_to_dict(run) for run in step.nested]
    return out


def _question_out(question: Question) -> str | list[dict[str, Any]]:
    return question if isinstance(question, str) else [dict(message) for message in question]


def _run_in(model: _RunModel) -> Run:
    return Run(
        id=model.id,
        workflow=_workflow_in(model.workflow),
        question=model.question if isinstance(model.question, str) else _messages_in(model.question),
        steps=tuple(_step_in(step) for step in model.steps),
        status=model.status,
        started=model.started,
        finished=model.finished,
        names=None if model.names is None else tuple(model.names),
        pool=model.pool,
        settings=model.settings,
        error=model.error,
        lost=tuple(
            LostCall(tuple(lost.path), lost.worker_name, lost.started, lost.tokens, lost.usd) for lost in model.lost
        ),
        charged=None if model.charged is None else Charge(**model.charged.model_dump()),
        versions=model.versions,
    )


def _workflow_in(steps: list[_WorkflowStepModel]) -> Workflow:
    return Workflow(
        tuple(
            Step(step.worker, step.subtask, step.access if step.access == ALL else tuple(step.access), step.depth)
            for step in steps
        )
    )


def _step_in(model: _StepModel) -> StepRecord:
    plain: dict[str, Any] = {name: getattr(model, name) for name in _StepModel.model_fields}
    plain["messages"] = _messages_in(model.messages)
    plain["usage"] = Usage(**model.usage.model_dump())
    plain["nested"] = tuple(_run_in(run) for run in model.nested)
    return StepRecord(**plain)


def _messages_in(models: list[_MessageModel]) -> tuple[Message, ...]:
    return tuple(Message(role=message.role, content=message.content) for message in models)


def _refusal(text: str | bytes, error: ValidationError) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        return "this is no run record: it is not JSON; `wfdsl run --json` and `wfdsl trace --json` write run records"
    version = found.get("version") if isinstance(found, dict) and found.get("format") == FORMAT else None
    if isinstance(version, int) and version > VERSION:
        return f"this run record has version {version}, this wfdsl reads up to {VERSION}; use a later wfdsl"
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the top level"
    return f"this is no run record: {first['msg']} at {where}"
