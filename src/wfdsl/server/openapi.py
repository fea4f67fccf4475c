"""The OpenAPI document of the server (`/openapi.json`): every address, what may be sent to it, and what comes back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from wfdsl._version import __version__

_Schema = dict[str, Any]


def openapi_document(models: Iterable[str], *, needs_key: bool) -> dict[str, Any]:
    """The document of a server with these models; `needs_key` says whether requests need an API key."""
    name = {"type": "string", "enum": list(models)}
    asking = {request: _with(_SCHEMAS[request], "model", name) for request in ("ChatRequest", "ResponsesRequest")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "wfdsl",
            "version": __version__,
            "description": "A Conductor and its workers, or a workflow file, as one model.",
        },
        "paths": _paths(),
        "components": {
            "schemas": {**_SCHEMAS, **asking},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        **({"security": [{"key": []}]} if needs_key else {}),
    }


def _with(schema: _Schema, name: str, value: _Schema) -> _Schema:
    """An object's schema with another property."""
    return {**schema, "properties": {**schema["properties"], name: value}}


def _paths() -> dict[str, Any]:
    free: _Schema = {"security": []}
    return {
        "/health": {"get": _get("Whether the process lives.", _status("ok")) | free},
        "/ready": {"get": _get("Whether requests are answered.", _status("ready", "starting"), 503) | free},
        "/openapi.json": {"get": _get("This document.", {"type": "object"}) | free},
        "/metrics": {"get": _operation("What Prometheus reads.", {"text/plain": {"schema": {"type": "string"}}}, 401)},
        "/v1/models": {"get": _get("All models.", _ref("Models"), 401)},
        "/v1/models/{id}": {
            "get": _get("One model.", _ref("Model"), 401, 404)
            | {"parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]}
        },
        "/v1/chat/completions": {"post": _asking("A chat completion.", "ChatRequest", "ChatCompletion", streams=True)},
        "/v1/responses": {"post": _asking("A response.", "ResponsesRequest", "Response", streams=True)},
        "/v1/route": {"post": _asking("The workflow that would answer.", "ChatRequest", "Route", streams=False)},
    }


def _get(summary: str, schema: _Schema, *errors: int) -> _Schema:
    return _operation(summary, {"application/json": {"schema": schema}}, *errors)


def _asking(summary: str, body: str, answer: str, *, streams: bool) -> _Schema:
    content: _Schema = {"application/json": {"schema": _ref(answer)}}
    if streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    found = _operation(summary, content, 400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503)
    found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(body)}}}
    key = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}
    found["parameters"] = [
        {"name": "Idempotency-Key", "in": "header", "required": False, "schema": key, "description": _IDEMPOTENT}
    ]
    return found


_IDEMPOTENT: Final = "A request with the key of an earlier one is answered by the run of that one."


def _operation(summary: str, content: _Schema, *errors: int) -> _Schema:
    failed = {"description": "An error.", "content": {"application/json": {"schema": _ref("Error")}}}
    starting = {"description": "Not yet.", "content": {"application/json": {"schema": _status("starting")}}}
    responses = {str(status): failed for status in errors}
    if errors == (503,):
        responses = {"503": starting}
    return {"summary": summary, "responses": {"200": {"description": summary, "content": content}, **responses}}


def _ref(name: str) -> _Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _status(*words: str) -> _Schema:
    return _object({"status": {"enum": list(words)}})


def _object(properties: dict[str, _Schema], *optional: str) -> _Schema:
    """An object with these properties, and perhaps others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _or_null(schema: _Schema) -> _Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(items: _Schema, **more: Any) -> _Schema:
    return {"type": "array", "items": items, **more}


_TEXT: Final[_Schema] = {"type": "string"}
_COUNT: Final[_Schema] = {"type": "integer", "minimum": 0}
_ANY: Final[_Schema] = {"type": "object"}
_LIMIT: Final[_Schema] = _or_null({"type": "integer", "minimum": 1, "maximum": 2**63 - 1})
_USD: Final[_Schema] = _or_null({"type": "number", "minimum": 0})
_MODEL_NAME: Final[_Schema] = {"type": "string", "minLength": 1}
_METADATA: Final[_Schema] = _or_null({"type": "object", "additionalProperties": _TEXT})
_SAMPLING: Final[dict[str, _Schema]] = {
    "temperature": _or_null({"type": "number", "minimum": 0, "maximum": 2}),
    "top_p": _or_null({"type": "number", "minimum": 0, "maximum": 1}),
    "stream": _or_null({"type": "boolean"}),
    "user": _or_null(_TEXT),
    "metadata": _METADATA,
}
_PART: Final[_Schema] = _object({"type": _TEXT})
_CONTENT: Final[_Schema] = {"anyOf": [_TEXT, _list(_PART, minItems=1)]}
_MESSAGE: Final[_Schema] = _object(
    {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
        "content": _or_null(_CONTENT),
        "tool_calls": _or_null(_list(_ANY)),
        "tool_call_id": _TEXT,
    },
    "content",
    "tool_calls",
    "tool_call_id",
)
_CHAT_REQUEST: Final[_Schema] = _object(
    {
        "model": _MODEL_NAME,
        "messages": _list(_MESSAGE, minItems=1),
        **_SAMPLING,
        "max_tokens": _LIMIT,
        "max_completion_tokens": _LIMIT,
        "n": _or_null({"type": "integer", "minimum": 1}),
        "seed": _or_null({"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}),
        "stop": _or_null({"anyOf": [_MODEL_NAME, _list(_MODEL_NAME, maxItems=4)]}),
        "stream_options": _or_null(_object({"include_usage": _or_null({"type": "boolean"})}, "include_usage")),
        "reasoning_effort": _or_null(_TEXT),
        "response_format": _or_null(_ANY),
        "tools": _or_null(_list(_ANY)),
        "tool_choice": _or_null({"type": ["string", "object"]}),
        "parallel_tool_calls": _or_null({"type": "boolean"}),
    }
)
_CHAT_REQUEST["required"] = ["model", "messages"]
_RESPONSES_REQUEST: Final[_Schema] = _object(
    {
        "model": _MODEL_NAME,
        "input": {"anyOf": [_TEXT, _list(_ANY, minItems=1)]},
        "instructions": _or_null(_TEXT),
        "previous_response_id": _or_null(_TEXT),
        **_SAMPLING,
        "max_output_tokens": _LIMIT,
        "reasoning": _or_null(_ANY),
        "text": _or_null(_ANY),
        "tools": _or_null(_list(_ANY)),
        "tool_choice": _or_null({"type": ["string", "object"]}),
        "parallel_tool_calls": _or_null({"type": "boolean"}),
        "store": _or_null({"type": "boolean"}),
        "include": _or_null(_list(_TEXT)),
    }
)
_RESPONSES_REQUEST["required"] = ["model", "input"]
_RUN: Final[_Schema] = _object(
    {"run": _TEXT, "cost_usd": _USD, "seconds": _USD, "steps": _list(_object({"step": _TEXT, "worker": _TEXT}))}
)
_CHAT_USAGE: Final[_Schema] = _object(
    {
        "prompt_tokens": _COUNT,
        "completion_tokens": _COUNT,
        "total_tokens": _COUNT,
        "prompt_tokens_details": _object({"cached_tokens": _COUNT}),
        "completion_tokens_details": _object({"reasoning_tokens": _COUNT}),
    }
)
_MODEL: Final[_Schema] = _object(
    {
        "id": _TEXT,
        "object": {"const": "model"},
        "created": _COUNT,
        "owned_by": _TEXT,
        "description": _TEXT,
        "context_window": _COUNT,
        "max_model_len": _COUNT,
        "pricing": _ANY,
    },
    "description",
    "context_window",
    "max_model_len",
    "pricing",
)
_SCHEMAS: Final[dict[str, _Schema]] = {
    "ChatRequest": _CHAT_REQUEST,
    "ResponsesRequest": _RESPONSES_REQUEST,
    "ChatCompletion": _object(
        {
            "id": _TEXT,
            "object": {"const": "chat.completion"},
            "created": _COUNT,
            "model": _TEXT,
            "choices": _list(
                _object(
                    {
                        "index": _COUNT,
                        "message": _object({"role": {"const": "assistant"}, "content": _or_null(_TEXT)}),
                        "finish_reason": {"enum": ["stop", "length", "tool_calls", "content_filter"]},
                    }
                ),
                minItems=1,
            ),
            "usage": _CHAT_USAGE,
            "wfdsl": {},
        }
    ),
    "Response": _object(
        {
            "id": _TEXT,
            "object": {"const": "response"},
            "created_at": _COUNT,
            "status": {"enum": ["completed", "incomplete"]},
            "model": _TEXT,
            "output": _list(_object({"type": _TEXT, "id": _TEXT})),
            "usage": _object({"input_tokens": _COUNT, "output_tokens": _COUNT, "total_tokens": _COUNT}),
            "wfdsl": _RUN,
        }
    ),
    "Route": _object(
        {
            "object": {"const": "wfdsl.route"},
            "model": _TEXT,
            "steps": _list(_object({"worker": _TEXT, "subtask": _TEXT, "access": {}})),
            "usage": _CHAT_USAGE,
            "cost_usd": _USD,
        },
        "usage",
        "cost_usd",
    ),
    "Model": _MODEL,
    "Models": _object({"object": {"const": "list"}, "data": _list(_MODEL)}),
    "Error": _object(
        {
            "error": _object(
                {"message": _TEXT, "type": _TEXT, "param": _or_null(_TEXT), "code": _or_null(_TEXT)},
            )
        }
    ),
}
