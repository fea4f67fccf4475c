"""The Responses API: its events in order, its response object, and what Codex and the official client send to it."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import httpx2
import openai
import pytest

from .conftest import ServerProcess
from .provider import Provider
from .test_streams import events

pytestmark = pytest.mark.slow
ASK = {"model": "two", "input": "Why?"}


@pytest.fixture
def asked(provider: Provider) -> list[dict[str, Any]]:
    """What the workers are asked in a test."""
    return provider.bodies


def post(server: ServerProcess, **more: Any) -> httpx2.Response:
    return httpx2.post(f"{server.url}/responses", content=json.dumps({**ASK, **more}), timeout=60)


def test_events_come_in_their_order_and_are_numbered_without_gaps(server: ServerProcess) -> None:
    reply = post(server, stream=True)
    found = events(reply.content)
    merged = [name.removeprefix("response.") for name, _ in groupby(event["type"] for event in found)]

    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.content.endswith(b"data: [DONE]\n\n")
    named = [line.removeprefix("event: ") for line in reply.text.splitlines() if line.startswith("event: ")]
    assert named == [event["type"] for event in found]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    reasoning = ["part.added", "text.delta", "text.done", "part.done"]
    text = ["content_part.added", "output_text.delta", "output_text.done", "content_part.done"]
    items = [[f"reasoning_summary_{each}" for each in reasoning], text]
    whole = [name for item in items for name in ("output_item.added", *item, "output_item.done")]
    assert merged == ["created", "in_progress", *whole, "completed"]
    said = [event["delta"] for event in found if event["type"].endswith("output_text.delta")]
    assert said == ["bob ", "did: ", "Solve ", "it."]
    lines = [event["delta"] for event in found if event["type"].endswith("summary_text.delta")]
    assert lines[0] == "step 1 of 2 (plan): worker ann\n"  # before any worker has answered
    added = [event for event in found if event["type"].endswith("item.added")]
    done = [event for event in found if event["type"].endswith("item.done")]
    output = found[-1]["response"]["output"]
    assert [event["item"] for event in done] == output
    assert [event["output_index"] for event in added] == [event["output_index"] for event in done] == [0, 1]
    about = [event for event in found if "item_id" in event]
    assert all(event["item_id"] == output[event["output_index"]]["id"] for event in about)
    assert all(("summary_index" if event["output_index"] == 0 else "content_index") in event for event in about)


def test_a_response_that_comes_whole_is_the_one_that_is_streamed(server: ServerProcess) -> None:
    more = {"metadata": {"a": "b"}, "instructions": "Be brief.", "store": True, "previous_response_id": None}
    whole = post(server, **more)
    found = whole.json()
    streamed = events(post(server, **more, stream=True).content)[-1]["response"]

    assert found.keys() == streamed.keys()
    own = {"id", "created_at", "completed_at", "output", "wfdsl"}
    assert {name: found[name] for name in found.keys() - own} == {name: streamed[name] for name in found.keys() - own}
    assert [item["type"] for item in found["output"]] == ["reasoning", "message"]
    message = found["output"][1]
    assert (message["role"], message["status"], message["content"]) == (
        "assistant",
        "completed",
        [{"type": "output_text", "text": "bob did: Solve it.", "annotations": [], "logprobs": []}],
    )
    assert (found["status"], found["instructions"], found["metadata"]) == ("completed", "Be brief.", {"a": "b"})
    assert found["store"] is False
    assert found["usage"] == {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 8,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 28,
    }
    assert [step["worker"] for step in found["wfdsl"]["steps"]] == ["ann", "bob"]
    assert found["id"] == f"resp_{whole.headers['x-wfdsl-run']}"
    with server.client.responses.stream(model="two", input="Why?") as stream:
        assert stream.get_final_response().output_text == "bob did: Solve it."


def test_what_codex_sends_is_understood(server: ServerProcess, asked: list[dict[str, Any]]) -> None:
    def message(role: str, kind: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    reply = post(
        server,
        instructions="You are a coding agent.",
        input=[
            message("developer", "input_text", "Be brief."),
            message("user", "input_text", "Name one."),
            {"type": "reasoning", "summary": [], "encrypted_content": "opaque"},
            message("assistant", "output_text", "A."),
            {"role": "user", "content": "Name two."},
        ],
        tools=[{"type": "web_search"}, {"type": "local_shell"}],
        tool_choice="auto",
        parallel_tool_calls=True,
        reasoning={"effort": "high", "summary": "auto"},
        store=False,
        include=["reasoning.encrypted_content"],
        prompt_cache_key="thread",
        text={"verbosity": "medium"},
        temperature=0.5,
        max_output_tokens=99,
    )

    assert reply.status_code == 200
    assert [(each["role"], each["content"]) for each in asked[0]["messages"]] == [
        ("system", "You are a coding agent.\n\nBe brief."),
        ("user", "Name one."),
        ("assistant", "A."),
        ("user", "Name two.\n\nPlan it."),
    ]
    assert (asked[1]["temperature"], asked[1]["max_tokens"]) == (0.5, 99)
    assert reply.json()["reasoning"]["effort"] == "high"


@pytest.mark.parametrize(
    ("more", "code", "param"),
    [
        ({"previous_response_id": "resp_1"}, "unsupported_parameter", "previous_response_id"),
        ({"previous_response_id": 1}, "invalid_value", "previous_response_id"),
        ({"store": "yes"}, "invalid_value", "store"),
        ({"background": True}, "unsupported_parameter", "background"),
        ({"conversation": "conv_1"}, "unsupported_parameter", "conversation"),
        ({"input": None}, "invalid_value", "input"),
        ({"input": []}, "invalid_value", "input"),
        ({"input": ["Why?"]}, "invalid_value", "input[0]"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "unsupported_parameter", "input[0]"),
        ({"input": [{"type": "computer_call"}]}, "unsupported_parameter", "input[0].type"),
        ({"input": [{"type": "reasoning"}, {"role": "king", "content": "x"}]}, "invalid_value", "input[1].role"),
        ({"instructions": 3}, "invalid_value", "instructions"),
        ({"max_output_tokens": 0}, "invalid_value", "max_output_tokens"),
        ({"reasoning": "high"}, "invalid_value", "reasoning"),
        ({"reasoning": {"effort": 3}}, "invalid_value", "reasoning.effort"),
        ({"text": {"verbosity": "low"}}, "unsupported_parameter", "text.verbosity"),
        ({"tools": {}}, "invalid_value", "tools"),
        ({"tools": [3]}, "invalid_value", "tools[0]"),
        ({"top_logprobs": 3}, "unsupported_parameter", "top_logprobs"),
        ({"model": None}, "invalid_value", "model"),
    ],
)
def test_a_wrong_value_is_named_as_this_api_names_it(
    server: ServerProcess, more: dict[str, Any], code: str, param: str
) -> None:
    reply = post(server, **more)
    error = reply.json()["error"]

    assert (reply.status_code, error["code"], error["param"]) == (400, code, param)
    assert "messages" not in error["message"]


def test_an_answer_that_was_cut_is_incomplete(server: ServerProcess, provider: Provider) -> None:
    provider.finishes["bob"] = "length"

    found = post(server).json()

    assert (found["status"], found["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert found["output"][-1]["status"] == "incomplete"


def test_a_run_that_fails_is_the_last_event(server: ServerProcess, provider: Provider) -> None:
    provider.status["bob"] = 429

    last = events(post(server, stream=True).content)[-1]
    with pytest.raises(openai.RateLimitError) as caught:
        server.client.responses.create(model="two", input="Why?")

    assert last["type"] == "response.failed"
    assert last["response"]["status"] == "failed"
    assert last["response"]["error"]["code"] == caught.value.code == "rate_limit_exceeded"
    assert "try again in 1s" in last["response"]["error"]["message"]
    assert json.dumps(last["response"]["wfdsl"]["steps"]).count('"worker"') == 2


@pytest.mark.parametrize(
    "said",
    [
        '{"message": "too much", "code": "context_length_exceeded"}',
        '{"message": "This model has a maximum context length of 8192 tokens."}',
        '{"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}',
    ],
)
def test_agents_are_told_that_the_conversation_is_too_long(server: ServerProcess, workers: Provider, said: str) -> None:
    workers.status["ann"], workers.failure = 400, f'{{"error": {said}}}'.encode()
    whole = post(server)
    last = events(post(server, stream=True).content)[-1]
    workers.status.clear()

    assert (whole.status_code, whole.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert (last["type"], last["response"]["error"]["code"]) == ("response.failed", "context_length_exceeded")


FUNCTION = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}
PATCH = {
    "type": "custom",
    "name": "weather",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
}


def test_a_tool_call_is_an_item_and_its_output_continues_the_run(
    server: ServerProcess, provider: Provider, asked: list[dict[str, Any]]
) -> None:
    provider.calls["bob"] = [("weather", '{"city": "Paris"}'), ("weather", "{}")]
    found = events(post(server, stream=True, tools=[FUNCTION, {"type": "web_search"}]).content)
    output = found[-1]["response"]["output"]
    calls = [item for item in output if item["type"] == "function_call"]
    results = [{"type": "function_call_output", "call_id": call["call_id"], "output": "rain"} for call in calls]
    again = post(server, input=[{"role": "user", "content": "Why?"}, *output, *results], tools=[FUNCTION]).json()
    provider.calls.clear()

    assert [item["type"] for item in output] == ["reasoning", "message", "function_call", "function_call"]
    assert [call["arguments"] for call in calls] == ['{"city": "Paris"}', "{}"]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    about = [event["type"] for event in found if event.get("item_id") == calls[0]["id"]]
    assert about == [f"response.function_call_arguments.{end}" for end in ("delta", "done")]
    assert again["output"][-1]["content"][0]["text"] == "bob did: rain"
    assert [body["model"] for body in asked] == ["ann", "bob", "bob"]
    assert again["usage"]["input_tokens"] == 10
    assert again["id"] != found[-1]["response"]["id"]


def test_a_custom_tool_takes_a_text(server: ServerProcess, provider: Provider, asked: list[dict[str, Any]]) -> None:
    provider.calls["bob"] = [("weather", "x")]
    reply = post(server, tools=[PATCH])
    provider.calls.clear()

    offered = asked[1]["tools"][0]
    assert reply.status_code == 200
    assert offered["type"] in ("custom", "function")
    item = reply.json()["output"][-1]
    assert item["type"] in ("custom_tool_call", "function_call")
