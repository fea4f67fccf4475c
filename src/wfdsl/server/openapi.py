"""The OpenAPI document of the server (`/openapi.json`), made of the classes with which requests are checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from wfdsl._version import __version__
from wfdsl.server.chat_request import ChatRequest
from wfdsl.server.responses_request import ResponsesBody

_Schema = dict[str, Any]


class Problem(BaseModel):
    """What went wrong, in words and as a code."""

    message: str
    type: str
    param: str | None
    code: str | None


class Error(BaseModel):
    """The answer to a request that cannot be answered."""

    error: Problem


_BODIES: Final = (ChatRequest, ResponsesBody)
_ASKING_ERRORS: Final = (400, 401, 403, 404, 408, 409, 413, 422, 429, 431, 500, 502, 503)


def openapi_document(models: Iterable[str], *, needs_key: bool) -> dict[str, Any]:
    """The document of a server with these models; `needs_key` says whether requests need an API key."""
    classes: list[tuple[type[BaseModel], JsonSchemaMode]] = [(each, "validation") for each in (*_BODIES, Error)]
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
        "/health": {"get": _operation("Whether the process lives.") | free},
        "/ready": {"get": _operation("Whether requests are answered; 503 says why not.", 503) | free},
        "/openapi.json": {"get": _operation("This document.") | free},
        "/metrics": {"get": _operation("What Prometheus reads.", 401, 403, 503)},
        "/v1/models": {"get": _operation("All models, as OpenAI lists them.", 401, 503)},
        "/v1/models/{id}": {"get": _operation("One model.", 401, 403, 404, 503) | {"parameters": [named]}},
        "/v1/chat/completions": {"post": _asking("A chat completion, as OpenAI has it.", ChatRequest)},
        "/v1/responses": {"post": _asking("A response, as OpenAI has it.", ResponsesBody)},
    }


def _asking(summary: str, body: type) -> _Schema:
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        "description": "A request with the key of an earlier one is answered by the run of that one.",
    }
    asked = {"required": True, "content": _content(body)}
    return _operation(summary, *_ASKING_ERRORS) | {"requestBody": asked, "parameters": [key]}


def _operation(summary: str, *errors: int) -> _Schema:
    failed = {"description": "An error.", "content": _content(Error)}
    return {"summary": summary, "responses": {"200": {"description": summary}} | {str(each): failed for each in errors}}


def _content(of: type) -> _Schema:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{of.__name__}"}}}
