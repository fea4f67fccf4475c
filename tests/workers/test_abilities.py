"""`wfdsl pools check --deep`, against servers that each lack one ability."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.workers.wire import entry_for, reply, serving, stream

from wfdsl.cli.main import main
from wfdsl.workers.abilities import abilities_of, price_bound
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool

if TYPE_CHECKING:
    from pathlib import Path


def refused(message: str) -> bytes:
    return reply(json.dumps({"error": {"message": message}}).encode(), status=400)


def answer(body: dict[str, Any], lacks: str) -> bytes:
    """What a server that lacks one ability sends."""
    roles = [message["role"] for message in body["messages"]]
    if lacks == "system role" and "system" in roles:
        return refused("System role not supported")
    if lacks == "history" and "assistant" in roles:
        return refused("only one turn is supported")
    if lacks == "alternation" and "user,user" in ",".join(roles):
        return refused("Conversation roles must alternate")
    if lacks == "tools" and "tools" in body:
        return refused("tools are not supported")
    said, read = "ok", sum(len(message["content"].split()) for message in body["messages"]) + 5
    if "500" in body["messages"][-1]["content"]:
        said = "1\n2\n3\n" * body["max_tokens"]
    if "grammar" in body and lacks != "grammar":
        said = "zebra-417"
    end = "length" if len(said) > body["max_tokens"] else "stop"
    if lacks == "natural end" and end == "stop":
        end = "eot_id"
    if lacks == "token limit" and end == "length":
        end = "stop"
    delta: dict[str, Any] = {"content": said}
    if "tools" in body:
        function = {"name": "look_up", "arguments": '{"word": "ok"}'}
        delta, end = {"tool_calls": [{"index": 0, "id": "1", "type": "function", "function": function}]}, "tool_calls"
    usage = {"prompt_tokens": min(read, 2048) if lacks == "context" else read, "completion_tokens": 1}
    pieces = [said] if lacks == "streaming" or "tools" in body else [said[:1], said[1:]]
    deltas = [delta] if "tools" in body else [{"content": piece} for piece in pieces]
    chunks = [{"choices": [{"index": 0, "delta": each}]} for each in deltas]
    return stream(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": usage}, "[DONE]")


async def found(lacks: str, **settings: Any) -> dict[str, bool | None]:
    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(answer(wire.requests[-1].body, lacks))

    async with serving(send) as wire, Pool([entry_for("chat", wire.url, **settings)]).open() as pool:
        return {each.name: each.ok for each in await abilities_of(pool.entry(0), pool.worker(0))}


ABILITIES = "system role", "history", "alternation", "streaming", "natural end", "token limit", "context", "grammar"


@pytest.mark.parametrize("lacks", ["", *ABILITIES, "tools"])
async def test_what_a_server_lacks_is_found_and_nothing_else(lacks: str) -> None:
    assert await found(lacks) == {name: name != lacks for name in (*ABILITIES, "tools")}


async def test_what_is_not_known_is_not_tried_and_a_stated_context_is() -> None:
    assert (await found("", stream=False))["streaming"] is None
    assert (await found("context", options={"context": 2000}))["context"]
    assert not (await found("context", options={"context": 4000}))["context"]


async def test_no_check_costs_more_than_its_bound() -> None:
    prices = Prices(input=1.0, output=10.0)
    entry = WorkerEntry(name="w", provider="openai", model="m", base_url="http://h/v1", prices=prices)

    requests, usd = price_bound(entry)

    assert requests == len(ABILITIES) + 1
    assert usd is not None
    assert requests * 64 * 10e-6 < usd < 0.1
    assert price_bound(entry.model_copy(update={"prices": None})) == (requests, None)


def test_the_command_says_first_what_it_may_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pool.toml"

    async def check(lacks: str) -> tuple[int, str, str]:
        async def send(writer: asyncio.StreamWriter) -> None:
            writer.write(answer(wire.requests[-1].body, lacks))

        async with serving(send) as wire:
            file.write_text(
                f'[[pool.workers]]\nname="a"\nprovider="openai"\nmodel="m"\nbase_url="{wire.url}/v1"\n'
                "prices = { input = 1, output = 1 }"
            )
            code = await asyncio.to_thread(main, ["pools", "check", str(file), "--deep", "--json"])
            assert len(wire.requests) == 1 + len(ABILITIES) + 1
            return (code, *capsys.readouterr())

    code, out, err = asyncio.run(check("tools"))

    (result,) = map(json.loads, out.splitlines())
    assert code == 0
    assert err.startswith("10 requests, which cost at most $0.0")
    assert [name for name, each in result["abilities"].items() if not each["ok"]] == ["tools"]
