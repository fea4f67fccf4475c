"""Requests that chat programs send by themselves are answered by one worker, and it is said so; all others are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conductor.scripted_server import lists

from .conftest import Serve
from .provider import CONDUCTOR, Provider

pytestmark = pytest.mark.slow
HISTORY = "### Chat History:\n<chat_history>\nUSER: Why?\nASSISTANT: Because.\n</chat_history>"
SIDE = {
    "title": f"### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n{HISTORY}",
    "tags": f"### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history\n{HISTORY}",
    "follow-ups": "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask "
    f"next in this conversation as a **user**\n{HISTORY}",
    "LibreChat": "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.",
}


def ask(url: str, content: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    body = {"model": "wfdsl", "messages": [{"role": "user", "content": content}], **more}
    return httpx.post(f"{url}/chat/completions", json=body, headers=headers, timeout=60)


@pytest.mark.parametrize("name", SIDE)
@pytest.mark.parametrize("limit", [None, 1000])
def test_a_side_request_is_answered_by_the_cheapest_worker_and_says_so(
    serve: Serve, provider: Provider, tmp_path: Path, name: str, limit: int | None
) -> None:
    pool = tmp_path / "pool.toml"
    pool.write_text(pool.read_text().replace('model = "bob"', 'model = "bob"\nprices = { input = 0.1, output = 0.2 }'))
    reply = ask(serve().url, SIDE[name], max_completion_tokens=limit)

    assert [body["model"] for body in provider.bodies] == ["bob"]
    assert reply.headers["x-wfdsl-skipped"] == "conductor"
    assert reply.json()["wfdsl"]["skipped"].startswith("conductor: ")


def test_a_side_request_that_streams_says_so_in_its_head(serve: Serve, provider: Provider) -> None:
    reply = ask(serve().url, SIDE["title"], stream=True)

    assert reply.headers["x-wfdsl-skipped"] == "conductor"
    assert CONDUCTOR not in [body["model"] for body in provider.bodies]


@pytest.mark.parametrize(
    ("content", "more"), [("What is 2 + 2?", {"max_tokens": 16}), (f"Explain this prompt:\n{SIDE['title']}", {})]
)
def test_any_other_request_is_answered_by_the_conductor(
    serve: Serve, provider: Provider, content: str, more: dict[str, Any]
) -> None:
    provider.plans = [lists([0], [[]])]
    reply = ask(serve("--max-rounds", "0").url, content, **more)

    assert [body["model"] for body in provider.bodies] == [CONDUCTOR, "ann"]
    assert "x-wfdsl-skipped" not in reply.headers


def test_a_server_without_the_rule_skips_nothing(serve: Serve, provider: Provider) -> None:
    provider.plans = [lists([0], [[]])]

    ask(serve("--set", "serve.side_requests=conductor", "--max-rounds", "0").url, SIDE["title"])

    assert [body["model"] for body in provider.bodies] == [CONDUCTOR, "ann"]
