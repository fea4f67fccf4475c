"""What the three APIs say when all is well, or nearly: texts, finishes, tokens, and what is sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from typing import Any

import pytest
from tests.workers.wire import (
    ANSWER,
    KINDS,
    answered,
    as_json,
    ask,
    call,
    entry_for,
    good_body,
    good_events,
    sent,
    serving,
    stream,
    streaming,
)

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Message, Usage
from wfdsl.workers import http_worker
from wfdsl.workers.entry import Prices
from wfdsl.workers.pool import Pool

PRICES = Prices(input=1.0, output=10.0, cached=0.5)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_reply_has_text_finish_tokens_model_and_cost_whole_and_in_pieces(kind: str) -> None:
    pieces: list[str] = []
    async with serving(as_json(good_body(kind))) as wire:
        got, unpriced = [await ask(entry_for(kind, wire.url, prices=prices)) for prices in (PRICES, None)]
    streamed = await answered(kind, stream(*good_events(kind)), call(on_delta=pieces.append), prices=PRICES)

    assert (got.text, got.finish, got.usage, got.model) == (ANSWER, "stop", Usage(11, 5), "m-1")
    assert unpriced.paid_usd is unpriced.list_usd is None
    assert got.paid_usd == got.list_usd == pytest.approx((11 * 1.0 + 5 * 10.0) / 1e6)
    assert streamed == got
    assert "".join(pieces) == ANSWER
    assert len(pieces) == 3


@pytest.mark.parametrize("kind", KINDS)
async def test_tokens_that_the_server_does_not_count_are_charged_at_their_bytes(kind: str) -> None:
    got = await answered(kind, as_json(good_body(kind, "é" * 10, usage=None)), call("é" * 7))

    assert got.usage == Usage(14, 20)


def _choice(message: dict[str, Any], reason: str | None = "stop") -> dict[str, Any]:
    return {"choices": [{"message": message, **({} if reason is None else {"finish_reason": reason})}]}


TOO_LONG = {"incomplete_details": {"reason": "max_output_tokens"}}
FINISHES = [
    ("chat", _choice({"content": None, "refusal": "No."}), "refusal", "No."),
    ("chat", _choice({"content": " "}), "empty", " "),
    ("chat", _choice({"content": None}, "length"), "out_of_tokens", ""),
    ("chat", _choice({"reasoning_content": "hm"}), "only_thinking", ""),
    ("chat", _choice({"tool_calls": [{"id": "1"}]}, "tool_calls"), "tool_calls", ""),
    ("chat", _choice({"content": [{"type": "text", "text": "A"}]}, None), "stop", "A"),
    ("responses", {"output": [{"content": [{"type": "refusal", "refusal": "No."}]}]}, "refusal", "No."),
    ("responses", {"output": []}, "empty", ""),
    ("responses", {"output": [{"type": "reasoning"}]}, "only_thinking", ""),
    ("responses", {"output": [{"type": "function_call"}]}, "tool_calls", ""),
    ("responses", {"output": [{"type": "reasoning"}], **TOO_LONG}, "out_of_tokens", ""),
    ("anthropic", {"stop_reason": "refusal", "content": []}, "refusal", ""),
    ("anthropic", {"content": [{"type": "thinking", "thinking": "hm"}]}, "only_thinking", ""),
    ("anthropic", {"content": [{"type": "tool_use"}], "stop_reason": "tool_use"}, "tool_calls", ""),
    ("anthropic", {"content": [{"type": "thinking"}], "stop_reason": "max_tokens"}, "out_of_tokens", ""),
]


@pytest.mark.parametrize(("kind", "change", "finish", "text"), FINISHES)
async def test_cut_refused_filtered_and_empty_replies_are_told_apart(
    kind: str, change: dict[str, Any], finish: str, text: str
) -> None:
    got = await answered(kind, as_json({**good_body(kind), **change}))

    assert (got.finish, got.text) == (finish, text)


CACHED = {"cached_tokens": 3, "cache_write_tokens": 2}
CHAT = {"prompt_tokens": 9, "completion_tokens": 7}
OTHERS = {"input_tokens": 9, "output_tokens": 7}
USAGES = [
    ("chat", {**CHAT, "completion_tokens_details": {"reasoning_tokens": 4}}, Usage(9, 7, 4)),
    ("chat", {**CHAT, "prompt_tokens_details": CACHED}, Usage(9, 7, 0, 3, 2)),
    ("chat", {**CHAT, "prompt_tokens_details": {"cached_tokens": 1000}}, Usage(9, 7, 0, 9)),
    ("chat", {**CHAT, "total_tokens": 116}, Usage(9, 107, 100)),
    ("chat", {**CHAT, "total_tokens": 10**400}, Usage(9, 7)),
    ("chat", {"total_tokens": 200}, Usage(14, 186, 166)),
    ("chat", {"prompt_tokens": 2**53, "completion_tokens": 0}, Usage(2**53, 0)),
    ("responses", {**OTHERS, "output_tokens_details": {"reasoning_tokens": 4}}, Usage(9, 7, 4)),
    ("responses", {**OTHERS, "input_tokens_details": CACHED}, Usage(9, 7, 0, 3, 2)),
    ("anthropic", {**OTHERS, "output_tokens_details": {"thinking_tokens": 4}}, Usage(9, 7, 4)),
    ("anthropic", {**OTHERS, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}, Usage(14, 7, 0, 3, 2)),
]


@pytest.mark.parametrize(("kind", "usage", "expected"), USAGES)
async def test_thinking_and_cached_tokens_are_counted_as_each_provider_means_them(
    kind: str, usage: dict[str, Any], expected: Usage
) -> None:
    got = await answered(kind, as_json(good_body(kind, "é" * 10, usage=usage)), call("é" * 7))

    assert got.usage == expected


UNREADABLE: list[Any] = [True, "10", -1, 10**400, {}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", UNREADABLE, ids=lambda value: repr(value)[:8])
async def test_a_count_that_cannot_be_right_is_charged_at_its_bound(kind: str, value: Any) -> None:
    asked, said = ("prompt_tokens", "completion_tokens") if kind == "chat" else ("input_tokens", "output_tokens")
    got = []
    for usage in ({asked: value, said: 5}, {asked: 11, said: value}, {asked: value, said: value}, {said: 5}, value):
        async with serving(as_json(good_body(kind, "é" * 10, usage=usage))) as wire:
            got.append((await ask(entry_for(kind, wire.url), call("é" * 7))).usage)

    assert got == [Usage(14, 5), Usage(11, 20), Usage(14, 20), Usage(14, 5), Usage(14, 20)]


def _labelled(body: bytes, label: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\n{label}connection: close\r\n\r\n"
    return head.encode() + body


EVENT_STREAM = "content-type: text/event-stream\r\n"
LABELS = ["", "content-type: application/json\r\n", EVENT_STREAM]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("label", LABELS, ids=["none", "json", "events"])
async def test_a_reply_is_read_by_what_it_is_whatever_was_asked_for_and_however_it_is_labelled(
    kind: str, streams: bool, label: str
) -> None:
    whole = b"\n " + json.dumps(good_body(kind)).encode()
    events = stream(*good_events(kind)).partition(b"\r\n\r\n")[2]
    for body in (whole, events, b": keep-alive\n\n" + events, b"\xef\xbb\xbf" + events):
        got = await answered(kind, _labelled(body, label), streaming(streams=streams))

        assert (got.text, got.finish, got.usage) == (ANSWER, "stop", Usage(11, 5))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"], ids=repr)
@pytest.mark.parametrize("size", [1, 1000])
async def test_lines_of_a_stream_end_in_each_of_the_three_ways(kind: str, end: bytes, size: int) -> None:
    body = stream(*good_events(kind)).partition(b"\r\n\r\n")[2].replace(b"\r\n", end)

    async def in_pieces(writer: Any) -> None:
        writer.write(_labelled(b"", EVENT_STREAM))
        for start in range(0, len(body), size):
            writer.write(body[start : start + size])
            await writer.drain()

    got = await answered(kind, in_pieces, streaming())

    assert got.text == ANSWER


async def test_a_stream_that_is_ended_without_a_reason_is_whole() -> None:
    events = [event for event in good_events("chat") if "finish_reason" not in str(event)]
    got = await answered("chat", stream(*events), streaming())

    assert (got.text, got.finish, got.usage) == (ANSWER, "stop", Usage(11, 5))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_whole_reply_is_not_lost_by_a_connection_that_breaks_after_it(kind: str) -> None:
    events = [event for event in good_events(kind) if event != "[DONE]"]

    async def break_off(writer: Any) -> None:
        body = stream(*events).partition(b"\r\n\r\n")[2]
        writer.write(b"HTTP/1.1 200 OK\r\n" + EVENT_STREAM.encode() + b"transfer-encoding: chunked\r\n\r\n")
        writer.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
        await writer.drain()

    got = await answered(kind, break_off, streaming())

    assert (got.text, got.usage) == (ANSWER, Usage(11, 5))


async def test_a_stream_may_be_asked_for_without_options() -> None:
    with_options = await sent("chat", streaming())
    without = await sent("chat", streaming(), stream_options=False)

    assert with_options.body["stream_options"] == {"include_usage": True}
    assert without.body["stream"] is True
    assert "stream_options" not in without.body


@pytest.mark.parametrize("kind", KINDS)
async def test_the_system_prompt_stands_first_and_only_once(kind: str) -> None:
    asked = call()
    asked = type(asked)(({"role": "system", "content": "Be brief."}, *asked.messages))

    request = await sent(kind, asked, system_prompt="You check.")

    body = request.body
    messages = body["input" if kind == "responses" else "messages"]
    system = {"chat": lambda: messages.pop(0)["content"], "responses": lambda: body["instructions"]}.get(
        kind, lambda: body["system"]
    )()
    assert system == "You check.\n\nBe brief."
    assert messages == [{"role": "user", "content": "What is it?"}]


async def test_a_chat_request_holds_what_was_set_and_nothing_else() -> None:
    request = await sent(
        "chat",
        call(settings={"temperature": 0.7, "stop": "END"}),
        temperature=0.2,
        top_p=0.9,
        seed=5,
        max_tokens=77,
        headers={"X-Team": "blue"},
        extra_body={"chat_template_kwargs": {"enable_thinking": False}},
    )

    assert request.path == "/v1/chat/completions"
    assert request.headers["x-team"] == "blue"
    assert request.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "What is it?"}],
        "max_tokens": 77,
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 5,
        "stop": ["END"],
        "chat_template_kwargs": {"enable_thinking": False},
    }


async def test_a_responses_request_holds_effort_and_is_not_stored() -> None:
    request = await sent("responses", reasoning_effort="minimal", max_tokens=77)

    assert request.path == "/v1/responses"
    assert request.body.items() >= {"reasoning": {"effort": "minimal"}, "max_output_tokens": 77, "store": False}.items()


async def test_anthropic_thinks_within_a_budget_that_comes_on_top_of_the_reply() -> None:
    request = await sent("anthropic", thinking_budget=2000, max_tokens=100, temperature=0.2, top_p=0.9)
    silent = await sent("anthropic", thinking_budget=0)

    assert request.path == "/v1/messages"
    assert request.body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert request.body["max_tokens"] == 2100
    assert not {"temperature", "top_p"} & set(request.body)
    assert silent.body["thinking"] == {"type": "disabled"}


async def test_google_gets_its_thinking_budget_in_its_own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "planted-key")
    async with serving(as_json(good_body("chat"))) as wire:
        entry = entry_for("chat", wire.url, thinking_budget=128, max_tokens=4096, api_key_env="GEMINI_API_KEY")
        await ask(entry.model_copy(update={"provider": "google"}))

    body = wire.requests[0].body
    assert body["extra_body"] == {"google": {"thinking_config": {"thinking_budget": 128}}}
    assert body["max_tokens"] == 4224


@pytest.mark.parametrize("kind", KINDS)
async def test_keys_and_secret_headers_come_from_the_environment(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", " planted-key\n")
    monkeypatch.setenv("MY_TOKEN", "planted-token")

    keyed = (await sent(kind, api_key_env="MY_KEY", headers_env={"X-Auth-Token": "MY_TOKEN"})).headers
    azure = (await sent(kind, headers_env={"api-key": "MY_KEY"})).headers
    own = (await sent(kind, headers_env={"authorization": "MY_KEY"})).headers

    assert (keyed["authorization"], keyed["x-auth-token"]) == ("Bearer planted-key", "planted-token")
    assert (azure["api-key"], "authorization" in azure) == ("planted-key", False)
    assert own["authorization"] == "planted-key"


async def test_two_hundred_calls_at_once_keep_their_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_worker._CONNECTIONS, "keepalive_expiry", None)  # a busy machine may take longer
    body = as_json(good_body("chat")).replace(b"connection: close\r\n", b"")
    connections: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"(?i)content-length: (\d+)", head)
                assert found is not None
                await reader.readexactly(int(found[1]))
                waiting.append(writer)
                if len(waiting) == 200:  # so that all calls are in flight together
                    for each in waiting:
                        each.write(body)
                    waiting.clear()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    waiting: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        pool = Pool([entry_for("chat", url)])
        async with pool.open():
            for _ in range(2):
                await asyncio.gather(*(pool.worker(0)(call()) for _ in range(200)))

        await asyncio.gather(*filter(None, connections))

    assert len(connections) == 200


async def test_a_proxy_for_the_outside_world_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    request = await sent("chat")

    assert request.path == "/v1/chat/completions"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_setting_that_no_worker_knows_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match='cannot set "heat"'):
        await sent(kind, call(settings={"heat": 1}))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "socks5://me:planted@127.0.0.1:9"),
        ("ALL_PROXY", "socks4://me:planted@127.0.0.1:9"),
        ("HTTPS_PROXY", "me@planted:port"),
        ("SSL_CERT_FILE", "/nowhere/planted.pem"),
    ],
)
async def test_network_settings_of_the_environment_that_cannot_be_used_are_refused(
    kind: str, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(UsageError, match=variable) as refused:
        await ask(entry_for(kind, "http://models.invalid"))

    assert "planted" not in str(refused.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_long_conversation_is_sent_without_a_look_at_each_message(kind: str) -> None:
    question = Message(role="user", content="What is 17 * 23?")
    took: list[float] = []
    async with serving(as_json(good_body(kind))) as wire, Pool([entry_for(kind, wire.url)]).open() as pool:
        for count in (1, 2000, 2000, 2000):
            began = time.process_time()
            await pool.worker(0)(Call((question,) * count))
            took.append(time.process_time() - began)

    assert min(took[1:]) < 0.15  # seconds; a conversion by types, as SDKs make it, takes 0.3 for so many
