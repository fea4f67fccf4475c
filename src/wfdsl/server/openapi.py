"""The OpenAPI document of the server (`/openapi.json`), made of the classes with which requests are checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from wfdsl._version import __version__
from wfdsl.server.chat_request import ChatBody
from wfdsl.server.responses_request import ResponsesBody

_Schema = dict[str, Any]


class Status(BaseModel):
    """Whether a server answers."""

    status: Literal["ok", "ready", "starting", "keys_unreadable"]


class Problem(BaseModel):
    """What went wrong, in words and as a code."""

    message: str
    type: str
    param: str | None
    code: str | None


class Error(BaseModel):
    """The answer to a request that cannot be answered."""

    error: Problem


class Model(BaseModel):
    """A model as it is listed."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    description: str = ""
    context_window: int | None = None
    max_model_len: int | None = None
    pricing: dict[str, Any] = {}


class Models(BaseModel):
    """All models."""

    object: Literal["list"]
    data: list[Model]


class ChatCompletion(BaseModel):
    """An answer; `usage` has the tokens of all calls, and `wfdsl` what was done."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any]
    wfdsl: dict[str, Any]


class ResponseObject(BaseModel):
    """An answer of the Responses API."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["completed", "incomplete"]
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any]
    wfdsl: dict[str, Any]


_ANSWERS: Final = (Status, Error, Model, Models, ChatCompletion, ResponseObject)
_BODIES: Final = (ChatBody, ResponsesBody)
_ASKING_ERRORS: Final = (400, 401, 403, 404, 408, 409, 413, 422, 429, 431, 500, 502, 503)


def openapi_document(models: Iterable[str], *, needs_key: bool) -> dict[str, Any]:
    """The document of a server with these models; `needs_key` says whether requests need an API key."""
    classes: list[tuple[type[BaseModel], JsonSchemaMode]] = [(each, "validation") for each in (*_BODIES, *_ANSWERS)]
    _, found = models_json_schema(classes, ref_template="#/components/schemas/{model}")
    schemas = found["$defs"]
    for body in _BODIES:
        schemas[body.__name__]["properties"]["model"] |= {"enum": list(models)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "wfdsl",
            "version": __version__,
            "description": "A Conductor and its workers, or a workflow file, as one model.",
        },
        "paths": _paths(),
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        **({"security": [{"key": []}]} if needs_key else {}),
    }


def _paths() -> dict[str, Any]:
    free: _Schema = {"security": []}
    named = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "/health": {"get": _operation("Whether the process lives.", Status) | free},
        "/ready": {"get": _operation("Whether requests are answered.", Status, 503) | free},
        "/openapi.json": {"get": _operation("This document.", None) | free},
        "/metrics": {"get": _operation("What Prometheus reads.", None, 401, 403, 503)},
        "/v1/models": {"get": _operation("All models.", Models, 401, 503)},
        "/v1/models/{id}": {"get": _operation("One model.", Model, 401, 403, 404, 503) | {"parameters": [named]}},
        "/v1/chat/completions": {"post": _asking("A chat completion.", ChatBody, ChatCompletion)},
        "/v1/responses": {"post": _asking("A response.", ResponsesBody, ResponseObject)},
    }


def _asking(summary: str, body: type, answer: type) -> _Schema:
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        "description": "A request with the key of an earlier one is answered by the run of that one.",
    }
    asked = {"required": True, "content": _content(body)}
    return _operation(summary, answer, *_ASKING_ERRORS) | {"requestBody": asked, "parameters": [key]}


def _operation(summary: str, answer: type | None, *errors: int) -> _Schema:
    good = {"description": summary, "content": _content(answer)} if answer is not None else {"description": summary}
    failed = {"description": "An error.", "content": _content(Status if answer is Status else Error)}
    return {"summary": summary, "responses": {"200": good, **{str(status): failed for status in errors}}}


def _content(of: type) -> Mapping[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{of.__name__}"}}}
