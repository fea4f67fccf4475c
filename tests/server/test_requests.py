"""What a chat completion request can ask for: images, forms of the answer, and how much effort.

The application runs in the test's own process, on workers behind real sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conductor.scripted_server import lists
from wfdsl.experiment import read_experiment
from wfdsl.interpreter.journal import Journal
from wfdsl.server.app import build_app
from wfdsl.server.models import ModelCards, served_models

from .conftest import POOL, WORKFLOW
from .provider import CONDUCTOR, Provider

ASK: Any = [{"role": "user", "content": "Why?"}]
PARTS = [
    {"type": "text", "text": "What is it?"},
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}


class Server:
    """The application, with these settings."""

    def __init__(
        self, folder: Path, url: str, *settings: str, pool: str = POOL, config: str = "", journal: bool = True
    ) -> None:
        (folder / "wfdsl.toml").write_text(config)
        (folder / "pool.toml").write_text(pool.format(url=url, conductor=CONDUCTOR))
        (folder / "two.wf").write_text(WORKFLOW)
        found = read_experiment(folder / "wfdsl.toml", [f"pool.use={folder / 'pool.toml'}", *settings])
        self.journal = Journal(folder / "journal.db")
        models = served_models(found, [str(folder / "two.wf")])
        kept = self.journal if journal else None
        self._app = build_app(ModelCards(models), found.serve, keys=None, journal=kept, log=lambda _: None)

    async def post(
        self, path: str = "chat/completions", headers: dict[str, str] | None = None, **fields: Any
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost/v1/", timeout=60) as client:
            return await client.post(path, headers=headers, json={"model": "two", "messages": ASK, **fields})


@pytest.fixture
def server(provider: Provider, tmp_path: Path) -> Iterator[Any]:
    made: list[Server] = []

    def start(*settings: str, **more: Any) -> Server:
        made.append(Server(tmp_path, provider.url, *settings, **more))
        return made[-1]

    yield start
    for each in made:
        each.journal.close()


async def test_images_go_to_workers_that_see_them(server: Any, provider: Provider) -> None:
    sees = POOL.replace('model = "bob"', 'model = "bob"\nimages = true')

    reply = await server(pool=sees).post(messages=[{"role": "user", "content": PARTS}])

    assert reply.status_code == 200
    assert provider.asked("ann")[0]["messages"][0]["content"].startswith("What is it?\n\nPlan it.\n\n[There are images")
    assert provider.asked("bob")[0]["messages"][0]["content"] == [
        {"type": "text", "text": "What is it?\n\nPlan it."},
        PARTS[1],
    ]


async def test_a_conductor_is_told_that_there_are_images(server: Any, provider: Provider) -> None:
    sees = POOL.replace('model = "bob"', 'model = "bob"\nimages = true')
    provider.plans = [lists([1], [[]])]

    await server("conductor.max_rounds=0", pool=sees).post(model="wfdsl", messages=[{"role": "user", "content": PARTS}])

    assert "[1 image]" in str(provider.asked(CONDUCTOR)[0]["messages"])
    assert provider.asked("bob")[0]["messages"][0]["content"][1] == PARTS[1]


@pytest.mark.parametrize("shape", [{"type": "json_object"}, SCHEMA])
async def test_a_form_of_the_answer_goes_to_the_step_that_answers(
    server: Any, provider: Provider, shape: dict[str, Any]
) -> None:
    provider.answers["bob"] = '{"a": 1}'

    reply = await server().post(response_format=shape)

    assert reply.json()["choices"][0]["message"]["content"] == '{"a": 1}'
    assert [body.get("response_format") for body in provider.bodies] == [None, shape]


async def test_an_answer_of_another_form_is_an_error(server: Any, provider: Provider) -> None:
    provider.answers["bob"] = "Here it is: {"

    reply = await server().post(response_format={"type": "json_object"})

    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "response_format_not_kept")


@pytest.mark.parametrize(
    ("effort", "steps", "rounds"), [("low", 3, 1), ("none", 1, 1), ("minimal", 1, 1), ("xhigh", 5, 3), (None, 5, 2)]
)
async def test_the_effort_chooses_rounds_and_steps(
    server: Any, provider: Provider, effort: str | None, steps: int, rounds: int
) -> None:
    provider.plans = [lists([0], [[]], word=str(number)) for number in range(rounds)]

    reply = await server().post(model="wfdsl", reasoning_effort=effort)

    assert reply.status_code == 200
    assert provider.plans == []
    assert f"one to {steps} steps" in str(provider.asked(CONDUCTOR)[0]["messages"])
    assert all("reasoning_effort" not in body for body in provider.bodies)


async def test_the_effort_of_a_workflow_file_goes_to_the_worker_that_answers(server: Any, provider: Provider) -> None:
    await server().post(reasoning_effort="low")

    assert [body.get("reasoning_effort") for body in provider.bodies] == [None, "low"]


@pytest.mark.parametrize("journal", [True, False])
async def test_a_key_belongs_to_one_request_also_while_its_run_begins(server: Any, journal: bool) -> None:
    headers, app = {"Idempotency-Key": "one"}, server(journal=journal)

    replies = await asyncio.gather(*(app.post(temperature=degree, headers=headers) for degree in (0.1, 0.2, 0.1)))

    assert [reply.status_code for reply in replies] == [200, 422, 200]
    assert replies[1].json()["error"]["code"] == "idempotency_key_reused"
    assert replies[0].json()["id"] == replies[2].json()["id"]
