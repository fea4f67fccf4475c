"""Tools, tool calls, images and forms of the answer, on the wire of each API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.workers.wire import KINDS, answered, as_json, entry_for, failure_of, good_body, sent, stream

from wfdsl.errors import WfdslError
from wfdsl.protocols import Call, Message, ToolCall
from wfdsl.workers.function import FunctionWorker

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA}}
CODE = {
    "type": "custom",
    "custom": {
        "name": "code",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a+/"}},
    },
}
SETTINGS = {"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False}
ARGUMENTS = '{"city": "Paris"}'
QUESTION: Message = {"role": "user", "content": "Which coat?"}


def called(kind: str, *, cut: bool = False, text: str | None = None) -> dict[str, Any]:
    """A body that calls the weather."""
    if kind == "chat":
        call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
        message = {"role": "assistant", "content": text, "tool_calls": [call]}
        return good_body("chat") | {
            "choices": [{"message": message, "finish_reason": "length" if cut else "tool_calls"}]
        }
    if kind == "responses":
        item = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": ARGUMENTS}
        said = [] if text is None else good_body("responses", text)["output"]
        more = {"incomplete_details": {"reason": "max_output_tokens"}} if cut else {}
        return good_body("responses") | {"output": [*said, item], **more}
    block = {"type": "tool_use", "id": "c1", "name": "weather", "input": json.loads(ARGUMENTS)}
    said = [] if text is None else [{"type": "text", "text": text}]
    return good_body("anthropic") | {"content": [*said, block], "stop_reason": "max_tokens" if cut else "tool_use"}


def pieces(kind: str) -> list[dict[str, Any] | str]:
    """The same as a stream."""
    if kind == "chat":
        first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}
        deltas = [first, *({"index": 0, "function": {"arguments": part}} for part in (ARGUMENTS[:5], ARGUMENTS[5:]))]
        chunks: list[dict[str, Any] | str] = [
            {"choices": [{"index": 0, "delta": {"tool_calls": [each]}}]} for each in deltas
        ]
        return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]"]
    if kind == "responses":
        return [{"type": "response.completed", "response": called(kind)}]
    block = {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}
    parts = [{"type": "input_json_delta", "partial_json": part} for part in (ARGUMENTS[:5], ARGUMENTS[5:])]
    return [
        {"type": "message_start", "message": {"model": "m-1", "usage": {"input_tokens": 11}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": part} for part in parts),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


def told() -> tuple[Message, ...]:
    calls = [ToolCall("c1", "weather", ARGUMENTS)._asdict(), ToolCall("c2", "code", "aaa", custom=True)._asdict()]
    return (
        QUESTION,
        {"role": "assistant", "content": "Let me see.", "tool_calls": calls},
        {"role": "tool", "content": "rain", "tool_call_id": "c1"},
        {"role": "tool", "content": "done", "tool_call_id": "c2"},
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("streams", [False, True])
async def test_a_tool_call_is_read_whole_and_in_pieces(kind: str, *, streams: bool) -> None:
    asked = Call((QUESTION,), settings=SETTINGS, on_delta=(lambda _: None) if streams else None)
    found = await answered(kind, stream(*pieces(kind)) if streams else as_json(called(kind, text="Let me see.")), asked)

    assert (found.text, found.finish) == ("" if streams else "Let me see.", "tool_calls")
    assert [(call.id, call.name, json.loads(call.arguments)) for call in found.tool_calls] == [
        ("c1", "weather", {"city": "Paris"})
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "cut"), [({}, False), ({"tools": [WEATHER], "tool_choice": "none"}, False), (SETTINGS, True)]
)
async def test_a_tool_call_counts_only_if_it_is_whole_and_tools_were_offered(
    kind: str, settings: dict[str, Any], *, cut: bool
) -> None:
    found = await answered(kind, as_json(called(kind, cut=cut)), Call((QUESTION,), settings=settings))

    assert found.tool_calls == ()
    assert found.finish == ("out_of_tokens" if cut else "tool_calls")


async def test_tools_and_results_in_the_chat_api() -> None:
    body = (await sent("chat", Call(told(), settings=SETTINGS))).body

    assert {name: body[name] for name in SETTINGS} == SETTINGS
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}},
                {"id": "c2", "type": "custom", "custom": {"name": "code", "input": "aaa"}},
            ],
        },
        {"role": "tool", "content": "rain", "tool_call_id": "c1"},
        {"role": "tool", "content": "done", "tool_call_id": "c2"},
    ]


async def test_tools_and_results_in_the_responses_api() -> None:
    choice = {"type": "function", "function": {"name": "weather"}}
    body = (await sent("responses", Call(told(), settings={"tools": [WEATHER, CODE], "tool_choice": choice}))).body

    assert body["tools"] == [
        {"type": "function", "name": "weather", "description": "The weather.", "parameters": SCHEMA},
        {
            "type": "custom",
            "name": "code",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a+/"},
        },
    ]
    assert body["tool_choice"] == {"type": "function", "name": "weather"}
    assert body["input"][1:] == [
        {"role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": ARGUMENTS},
        {"type": "custom_tool_call", "call_id": "c2", "name": "code", "input": "aaa"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
    ]


async def test_tools_and_results_in_anthropics_api() -> None:
    body = (await sent("anthropic", Call(told(), settings={**SETTINGS, "tools": [WEATHER, CODE]}))).body

    assert body["tools"][0] == {"name": "weather", "description": "The weather.", "input_schema": SCHEMA}
    assert body["tools"][1]["input_schema"]["required"] == ["input"]
    assert body["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}},
                {"type": "tool_use", "id": "c2", "name": "code", "input": {"input": "aaa"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "rain"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "done"},
            ],
        },
    ]


async def test_a_custom_tool_of_which_anthropic_makes_a_function_is_called_with_a_text() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "code", "input": {"input": "aaa"}}
    body = good_body("anthropic") | {"content": [block], "stop_reason": "tool_use"}
    found = await answered("anthropic", as_json(body), Call((QUESTION,), settings={"tools": [CODE]}))

    assert found.tool_calls == (ToolCall("c1", "code", "aaa", custom=True),)


async def test_anthropic_does_not_think_where_tools_are_offered() -> None:
    asked = Call((QUESTION,), settings=SETTINGS)

    assert (await sent("anthropic", asked, thinking_budget=2000)).body["thinking"] == {"type": "disabled"}


IMAGE = "data:image/png;base64,AAAA"
SHOWN: Message = {"role": "user", "content": "What is it?", "images": [IMAGE, "https://example.org/a.png"]}


async def test_images_are_shown_to_workers_that_see_them() -> None:
    asked = Call((SHOWN,))
    chat, responses, claude = [(await sent(kind, asked, images=True)).body for kind in KINDS]

    assert [part["type"] for part in chat["messages"][0]["content"]] == ["text", "image_url", "image_url"]
    assert chat["messages"][0]["content"][1]["image_url"] == {"url": IMAGE}
    assert [part["type"] for part in responses["input"][0]["content"]] == ["input_text", "input_image", "input_image"]
    assert [part["source"] for part in claude["messages"][0]["content"][1:]] == [
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        {"type": "url", "url": "https://example.org/a.png"},
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_worker_that_sees_no_images_is_told_that_there_are_some(kind: str) -> None:
    body = (await sent(kind, Call((SHOWN,)))).body

    (message,) = body["input" if kind == "responses" else "messages"]
    assert message["content"] == "What is it?\n\n[There are images here, which you cannot see.]"


async def test_a_form_of_the_answer_in_each_api() -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "coat", "schema": SCHEMA, "strict": True}}
    asked = Call((QUESTION,), settings={"response_format": shape})
    chat, responses, claude = [(await sent(kind, asked)).body for kind in KINDS]

    assert chat["response_format"] == shape
    assert responses["text"] == {"format": {"type": "json_schema", "name": "coat", "schema": SCHEMA, "strict": True}}
    assert claude["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}


async def test_what_a_worker_cannot_do_is_refused_and_not_ignored() -> None:
    async def function(messages: list[dict[str, Any]]) -> str:
        return "x"

    for settings in (SETTINGS, {"grammar": "root ::= x"}):
        with pytest.raises(WfdslError, match=r"takes no (tools|grammar)"):
            await FunctionWorker(function)(Call((QUESTION,), settings=settings))
    asked = Call((QUESTION,), settings={"response_format": {"type": "json_object"}})
    failure = await failure_of(entry_for("anthropic", "http://127.0.0.1:9"), asked)
    assert "takes a JSON schema" in str(failure)
