"""The JSON form of the run record as pydantic models, which check what is read."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wfdsl.errors import UsageError
from wfdsl.protocols import Finish, RunStatus, StepState

_FORMAT: Final = "wfdsl-run"
_VERSION: Final = 1

_Cost = float | None
_Index = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class _ToolCallModel(_Strict):
    id: str
    name: str
    arguments: str
    custom: bool


class _MessageModel(_Strict):
    role: Literal["system", "user", "assistant", "tool"]
    content: str
    images: list[str] | None = None
    tool_calls: list[_ToolCallModel] | None = None
    tool_call_id: str | None = None


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
    temperature: float | None = None
    max_tokens: int | None = None


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
    thinking: str = ""
    ending: str = ""


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


def validated(text: str | bytes) -> dict[str, Any]:
    """The checked values of a record.

    Raises:
        UsageError: the text is not a run record that this version can read.
    """
    try:
        return _RunModel.model_validate_json(text).model_dump()
    except ValidationError as error:
        raise UsageError(_refusal(text, error)) from error


def _refusal(text: str | bytes, error: ValidationError) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        return "not a run record (it is not JSON); `wfdsl run --json` and `wfdsl runs show --json` write run records"
    version = found.get("version") if isinstance(found, dict) and found.get("format") == _FORMAT else None
    if isinstance(version, int) and version > _VERSION:
        return f"this run record has version {version}, this wfdsl reads up to {_VERSION}; use a later wfdsl"
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the top level"
    return f"not a run record: {first['msg']} at {where}"
