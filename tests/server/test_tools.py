"""Tools through a workflow: calls are sent to the client, results continue the run, and nothing is paid twice."""

from __future__ import annotations

import signal
from typing import Any

import openai
import pytest

from tests.conductor.scripted_server import lists

from .conftest import Serve, ServerProcess
from .provider import Provider

pytestmark = pytest.mark.slow
ASK: Any = [{"role": "user", "content": "Which coat?"}]
TOOL: Any = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
PARIS = (("weather", '{"city": "Paris"}'), ("weather", '{"city": "Rome"}'))


def create(server: ServerProcess, messages: Any = ASK, *, model: str = "two", key: str = "none", **more: Any) -> Any:
    client = openai.OpenAI(base_url=server.url, api_key=key, max_retries=0, timeout=60)
    return client.chat.completions.create(model=model, messages=messages, tools=[TOOL], **more)


def answered(reply: Any, *results: str) -> list[Any]:
    """The conversation with the results of the tool calls of a reply."""
    said = reply.choices[0].message
    told = [
        {"role": "tool", "tool_call_id": call.id, "content": result}
        for call, result in zip(said.tool_calls, results, strict=True)
    ]
    return [*ASK, said.model_dump(exclude_none=True), *told]


def test_a_tool_call_comes_back_and_its_result_continues_the_run(serve: Serve, provider: Provider) -> None:
    provider.calls["bob"] = list(PARIS)
    server = serve()

    first = create(server)
    second = create(server, answered(first, "rain", "sun"))

    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert message.content == "Let me see."
    assert [(call.function.name, call.function.arguments) for call in message.tool_calls] == list(PARIS)
    assert len({call.id for call in message.tool_calls}) == 2
    assert (second.choices[0].finish_reason, second.choices[0].message.content) == ("stop", "bob did: sun")
    assert [body["model"] for body in provider.bodies] == ["ann", "bob", "bob"]
    assert "tools" not in provider.asked("ann")[0]
    roles = [message["role"] for message in provider.asked("bob")[1]["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "tool"]
    assert second.wfdsl["run"] == first.wfdsl["run"]
    assert (first.usage.prompt_tokens, second.usage.prompt_tokens) == (20, 10)
    assert second.wfdsl["cost_usd"] > first.wfdsl["cost_usd"]


def test_tool_calls_are_streamed_as_clients_expect_them(serve: Serve, provider: Provider) -> None:
    provider.calls["bob"] = list(PARIS)
    server = serve()

    chunks = list(create(server, stream=True))
    calls: dict[int, dict[str, str]] = {}
    for chunk in chunks:
        for call in chunk.choices[0].delta.tool_calls or ():
            known = calls.setdefault(call.index, {"id": call.id or "", "name": "", "arguments": ""})
            known["name"] += call.function.name or ""
            known["arguments"] += call.function.arguments or ""

    assert [(call["name"], call["arguments"]) for call in calls.values()] == list(PARIS)
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["tool_calls"]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Let me see."
    reasoning = "".join(getattr(chunk.choices[0].delta, "reasoning_content", "") for chunk in chunks)
    assert "step 2 of 2 (solve): suspended" in reasoning

    told = [{"role": "tool", "tool_call_id": call["id"], "content": "sun"} for call in calls.values()]
    said = {
        "role": "assistant",
        "tool_calls": [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in calls.values()
        ],
    }
    again = list(create(server, [*ASK, said, *told], stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in again) == "bob did: sun"
    reasoning = "".join(getattr(chunk.choices[0].delta, "reasoning_content", "") for chunk in again)
    assert "(plan)" not in reasoning


def test_a_conductor_makes_no_new_plan_for_a_result(serve: Serve, provider: Provider) -> None:
    provider.calls["bob"] = [PARIS[0]]
    provider.plans = [lists([0, 1], [[], [0]])]
    server = serve("--max-rounds", "0")

    first = create(server, model="wfdsl")
    second = create(server, answered(first, "rain"), model="wfdsl")

    assert second.choices[0].message.content == "bob did: rain"
    assert [body["model"] for body in provider.bodies] == ["boss", "ann", "bob", "bob"]


def test_a_result_finds_its_run_after_a_kill_and_pays_nothing_twice(own: Serve, provider: Provider) -> None:
    provider.calls["bob"] = [PARIS[0]]
    server = own()
    first = create(server)
    server.stop(signal.SIGKILL)

    server = own()
    answers = [create(server, answered(first, "rain")).choices[0].message.content for _ in range(2)]

    assert answers == ["bob did: rain"] * 2
    assert [body["model"] for body in provider.bodies] == ["ann", "bob", "bob"]


def test_an_id_that_is_not_known_is_part_of_a_new_question(serve: Serve, provider: Provider) -> None:
    said = {
        "role": "assistant",
        "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
    }
    told = {"role": "tool", "tool_call_id": "call_0", "content": "rain"}

    create(serve(), [*ASK, said, told])

    assert [body["model"] for body in provider.bodies] == ["ann", "bob"]
    assert provider.asked("ann")[0]["messages"] == [
        {"role": "user", "content": "Which coat?"},
        {"role": "assistant", "content": "[called weather as call_0]\n{}"},
        {"role": "user", "content": "[result of call_0]\nrain\n\nPlan it."},
    ]


def test_a_result_that_is_missing_is_asked_for(serve: Serve, provider: Provider) -> None:
    provider.calls["bob"] = list(PARIS)
    server = serve()
    told = answered(create(server), "rain", "sun")

    with pytest.raises(openai.BadRequestError, match="no result") as caught:
        create(server, told[:-1])

    assert caught.value.code == "invalid_value"
    assert told[-1]["tool_call_id"] in caught.value.message


def test_a_step_that_has_called_tools_often_enough_has_to_answer(serve: Serve, provider: Provider) -> None:
    provider.calls["bob"] = [PARIS[0]]
    server = serve("--set", "serve.max_tool_rounds=1")

    create(server, answered(create(server), "rain"))

    assert [body.get("tool_choice") for body in provider.asked("bob")] == [None, "none"]


def test_all_steps_may_call_tools_if_the_server_says_so(serve: Serve, provider: Provider) -> None:
    provider.calls["ann"] = [PARIS[0]]
    server = serve("--set", "serve.tools=all")

    first = create(server)
    second = create(server, answered(first, "rain"))

    assert first.choices[0].message.content is None
    assert second.choices[0].message.content == "bob did: Solve it."
    assert [message["content"] for message in provider.asked("bob")[0]["messages"]] == [
        "Which coat?\n\nPlan it.",
        "ann did: rain",
        "Solve it.",
    ]
