"""Requests that chat programs send by themselves are answered by one worker, and it is said so; all others are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conductor.scripted_server import lists
from wfdsl.server.keys import ApiKeys, make_key

from .conftest import POOL, App
from .provider import CONDUCTOR, Provider

HISTORY = "### Chat History:\n<chat_history>\nUSER: Why?\nASSISTANT: Because.\n</chat_history>"
SIDE = {
    "title": f"### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n{HISTORY}",
    "tags": f"### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history\n{HISTORY}",
    "follow-ups": "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask "
    f"next in this conversation as a **user**\n{HISTORY}",
    "LibreChat": "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.",
}


CHEAP = POOL.replace('model = "bob"', 'model = "bob"\nprices = {{ input = 0.1, output = 0.2 }}')


async def ask(app: App, content: str, **more: Any) -> httpx2.Response:
    return await app.post(model="wfdsl", messages=[{"role": "user", "content": content}], **more)


@pytest.mark.parametrize("name", SIDE)
@pytest.mark.parametrize("more", [{}, {"max_completion_tokens": 1000}, {"stream": True}])
async def test_a_side_request_is_answered_by_the_cheapest_worker_and_says_so(
    app: Any, provider: Provider, name: str, more: dict[str, Any]
) -> None:
    reply = await ask(app(pool=CHEAP), SIDE[name], **more)

    assert [body["model"] for body in provider.bodies] == ["bob"]
    assert reply.headers["x-wfdsl-skipped"] == "conductor"
    assert '"skipped":"conductor: ' in reply.text


@pytest.mark.parametrize(
    ("content", "more"), [("What is 2 + 2?", {"max_tokens": 16}), (f"Explain this prompt:\n{SIDE['title']}", {})]
)
async def test_any_other_request_is_answered_by_the_conductor(
    app: Any, provider: Provider, content: str, more: dict[str, Any]
) -> None:
    provider.plans = [lists([0], [[]])]

    reply = await ask(app("conductor.max_rounds=0"), content, **more)

    assert [body["model"] for body in provider.bodies] == [CONDUCTOR, "ann"]
    assert "x-wfdsl-skipped" not in reply.headers


@pytest.mark.parametrize("evaluation", [True, False])
async def test_the_rule_is_off_for_a_server_and_for_a_key_that_measures(
    app: Any, provider: Provider, tmp_path: Path, evaluation: bool
) -> None:
    provider.plans = [lists([0], [[]])]
    settings, keys, headers = ["conductor.max_rounds=0"], None, {}
    if evaluation:
        key = make_key(str(tmp_path / "keys.toml"), "ann", {"evaluation": True})
        keys, headers = ApiKeys(str(tmp_path / "keys.toml"), print), {"Authorization": f"Bearer {key}"}
    else:
        settings.append("serve.side_requests=conductor")

    reply = await ask(app(*settings, keys=keys), SIDE["title"], headers=headers)

    assert [body["model"] for body in provider.bodies] == [CONDUCTOR, "ann"]
    assert "x-wfdsl-skipped" not in reply.headers
