"""Chat completions that come whole: what counts, what is refused, what they cost."""

from __future__ import annotations

from typing import Any

import httpx2
import openai
import pytest

from tests.conductor.scripted_server import lists

from .conftest import Serve, ServerProcess
from .provider import CONDUCTOR, Provider

pytestmark = pytest.mark.slow
ASK: Any = [{"role": "user", "content": "Why?"}]


def test_a_conductor_answers_like_a_model(serve: Serve, provider: Provider) -> None:
    server = serve("--max-rounds", "0")
    provider.plans = [lists([0, 1], [[], [0]])]

    reply = server.client.chat.completions.with_raw_response.create(model="wfdsl", messages=ASK)
    found = reply.parse()
    extra = found.to_dict()["wfdsl"]

    assert found.choices[0].message.content == "bob did: task 1"
    assert found.choices[0].finish_reason == "stop"
    assert [body["model"] for body in provider.bodies] == [CONDUCTOR, "ann", "bob"]
    words = sum(len(text.split(" ")) for text in (lists([0, 1], [[], [0]]), "ann did: task 0", "bob did: task 1"))
    assert found.usage is not None
    assert found.usage.to_dict() == {
        "prompt_tokens": 30,
        "completion_tokens": words,
        "total_tokens": 30 + words,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert isinstance(extra, dict)
    assert extra["cost_usd"] == pytest.approx((30 + 2 * words) / 1e6)
    assert [(step["step"], step["worker"]) for step in extra["steps"]] == [
        ("conductor", CONDUCTOR),
        ("step 0", "ann"),
        ("step 1", "bob"),
    ]
    assert sum(step["prompt_tokens"] for step in extra["steps"]) == 30
    assert reply.headers["x-wfdsl-run"] == extra["run"]
    assert float(reply.headers["x-wfdsl-cost"]) == pytest.approx(extra["cost_usd"], abs=1e-6)


def test_the_whole_conversation_counts_as_text_or_parts(serve: Serve, provider: Provider) -> None:
    parts = [{"type": "text", "text": "Name "}, {"type": "text", "text": "two."}]
    conversation: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Name one."},
        {"role": "assistant", "content": [{"type": "text", "text": "A."}]},
        {"role": "user", "content": parts},
    ]

    serve().client.chat.completions.create(model="two", messages=conversation)

    assert provider.asked("ann")[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Name one."},
        {"role": "assistant", "content": "A."},
        {"role": "user", "content": "Name two.\n\nPlan it."},
    ]


def test_sampling_settings_go_to_the_call_that_answers(serve: Serve, provider: Provider) -> None:
    provider.answers["bob"] = "one two END three"

    reply = serve().client.chat.completions.create(
        model="two", messages=ASK, temperature=0.5, top_p=0.25, max_tokens=7, stop=["END"], seed=3
    )

    (plan,), (solve,) = provider.asked("ann"), provider.asked("bob")
    assert reply.choices[0].message.content == "one two "
    assert {name: solve[name] for name in ("temperature", "top_p", "max_tokens", "stop")} == {
        "temperature": 0.5,
        "top_p": 0.25,
        "max_tokens": 7,
        "stop": ["END"],
    }
    assert not {"temperature", "top_p", "stop"} & plan.keys()
    assert plan["max_tokens"] == 4096  # the most that the pool allows
    assert plan["seed"] != solve["seed"]
    serve().client.chat.completions.create(model="two", messages=ASK, max_completion_tokens=1_000_000)
    assert provider.asked("bob")[1]["max_tokens"] == 4096


TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
AUDIO = {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}
CALLED = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}

STRICT = {
    "type": "json_schema",
    "json_schema": {"name": "x", "strict": True, "schema": {"properties": {"a": {"oneOf": []}}}},
}


UNSUPPORTED: list[dict[str, Any]] = [
    {"functions": [{"name": "f"}]},
    {"n": 2},
    {"logprobs": True},
    {"presence_penalty": 1},
]


@pytest.mark.parametrize(
    ("more", "param"),
    [
        *((more, next(iter(more))) for more in UNSUPPORTED),
        ({"messages": []}, "messages"),
        ({"messages": [AUDIO]}, "messages[0].content[0].type"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"messages": "Why?"}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"seed": 1.5}, "seed"),
        ({"seed": 10**30}, "seed"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"stop": 5}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": 1}, "stream_options"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"user": 1}, "user"),
        ({"model": None}, "model"),
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
        ({"tools": [TOOL], "parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"messages": [*ASK, {"role": "tool", "content": "4"}]}, "messages[1]"),
        ({"messages": [*ASK, CALLED]}, "messages[1]"),
        ({"messages": ASK * 2001}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 257}]}, "messages[0].content"),
        ({"tools": [TOOL] * 129}, "tools"),
        ({"response_format": STRICT}, "response_format.json_schema.schema.properties.a.oneOf"),
        ({"messages": [*ASK, {"role": "assistant", "tool_calls": [{}]}]}, "messages[1].tool_calls[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc"}}]}]},
            "messages[0].content[0].image_url.url",
        ),
    ],
)
def test_a_wrong_value_and_what_cannot_be_honoured_are_named(
    server: ServerProcess, more: dict[str, Any], param: str
) -> None:
    reply = httpx2.post(f"{server.url}/chat/completions", json={"model": "two", "messages": ASK, **more}, timeout=60)

    code = "unsupported_parameter" if more in UNSUPPORTED else "invalid_value"
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error.items() >= {"code": code, "param": param, "type": "invalid_request_error"}.items()
    if isinstance(more.get("stop"), list):  # said of the list, though a text would do too
        assert "4" in error["message"]


def test_what_makes_no_difference_is_taken(serve: Serve) -> None:
    reply = serve().client.chat.completions.create(
        model="two",
        messages=ASK,
        n=1,
        response_format={"type": "text"},
        service_tier="auto",
        user="me",
        metadata={"a": "b"},
        extra_body={"tools": [TOOL], "tool_choice": "none", "nobody_knows_this": 1},
    )

    assert reply.choices[0].message.content == "bob did: Solve it."


def test_models_are_listed_and_shown(serve: Serve) -> None:
    client = serve().client

    assert [model.id for model in client.models.list()] == ["wfdsl", "two"]
    assert client.models.retrieve("two").owned_by == "wfdsl"
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-5", messages=ASK)
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("method", "path", "status", "fields"),
    [
        ("GET", "/health", 200, {"status"}),
        ("GET", "/ready", 200, {"status"}),
        ("GET", "/v1/nothing", 404, {"error"}),
        ("GET", "/v1/chat/completions", 405, {"error"}),
    ],
)
def test_health_says_nothing_else_and_errors_have_the_shape_that_clients_read(
    server: ServerProcess, method: str, path: str, status: int, fields: set[str]
) -> None:
    reply = httpx2.request(method, server.url.removesuffix("/v1") + path, timeout=60)

    assert (reply.status_code, set(reply.json())) == (status, fields)
    assert status == 200 or set(reply.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("status", "seen", "code"), [(429, 429, "rate_limit_exceeded"), (401, 502, "run_failed"), (500, 502, "run_failed")]
)
def test_a_worker_that_fails_is_an_error_with_the_run(
    serve: Serve, provider: Provider, status: int, seen: int, code: str
) -> None:
    provider.status["ann"] = status

    with pytest.raises(openai.APIStatusError) as caught:
        serve("--quiet").client.chat.completions.create(model="two", messages=ASK)

    assert (caught.value.status_code, caught.value.code) == (seen, code)
    assert "step 0 (plan) failed, worker 0 (ann)" in caught.value.message
    assert caught.value.response.headers["x-wfdsl-run"]


def test_a_budget_holds_for_each_request(serve: Serve, provider: Provider) -> None:
    client = serve("--budget-calls", "1").client

    for _ in range(2):
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model="two", messages=ASK)
        assert caught.value.code == "insufficient_quota"
    assert [body["model"] for body in provider.bodies] == ["ann", "ann"]
