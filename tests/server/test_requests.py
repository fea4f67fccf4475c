"""What a chat completion request can ask for: images, forms of the answer, and how much effort.

The application runs in the test's own process, on workers behind real sockets.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conductor.scripted_server import lists
from wfdsl.server import app as server_app

from .conftest import POOL
from .provider import CONDUCTOR, Provider

ASK: Any = [{"role": "user", "content": "Why?"}]
PARTS = [
    {"type": "text", "text": "What is it?"},
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}


async def test_images_go_to_workers_that_see_them(app: Any, provider: Provider) -> None:
    sees = POOL.replace('model = "bob"', 'model = "bob"\nimages = true')

    reply = await app(pool=sees).post(messages=[{"role": "user", "content": PARTS}])

    assert reply.status_code == 200
    assert provider.asked("ann")[0]["messages"][0]["content"].startswith("What is it?\n\nPlan it.\n\n[There are images")
    assert provider.asked("bob")[0]["messages"][0]["content"] == [
        {"type": "text", "text": "What is it?\n\nPlan it."},
        PARTS[1],
    ]


async def test_a_conductor_is_told_that_there_are_images(app: Any, provider: Provider) -> None:
    sees = POOL.replace('model = "bob"', 'model = "bob"\nimages = true')
    provider.plans = [lists([1], [[]])]

    await app("conductor.max_rounds=0", pool=sees).post(model="wfdsl", messages=[{"role": "user", "content": PARTS}])

    assert "[1 image]" in str(provider.asked(CONDUCTOR)[0]["messages"])
    assert provider.asked("bob")[0]["messages"][0]["content"][1] == PARTS[1]


@pytest.mark.parametrize("shape", [{"type": "json_object"}, SCHEMA])
async def test_a_form_of_the_answer_goes_to_the_step_that_answers(
    app: Any, provider: Provider, shape: dict[str, Any]
) -> None:
    provider.answers["bob"] = '{"a": 1}'

    reply = await app().post(response_format=shape)

    assert reply.json()["choices"][0]["message"]["content"] == '{"a": 1}'
    assert [body.get("response_format") for body in provider.bodies] == [None, shape]


@pytest.mark.parametrize(
    ("effort", "steps", "rounds"), [("low", 3, 1), ("none", 1, 1), ("minimal", 1, 1), ("xhigh", 5, 3), (None, 5, 2)]
)
async def test_the_effort_chooses_rounds_and_steps(
    app: Any, provider: Provider, effort: str | None, steps: int, rounds: int
) -> None:
    provider.plans = [lists([0], [[]], word=str(number)) for number in range(rounds)]

    reply = await app().post(model="wfdsl", reasoning_effort=effort)

    assert reply.status_code == 200
    assert provider.plans == []
    assert f"one to {steps} steps" in str(provider.asked(CONDUCTOR)[0]["messages"])
    assert all("reasoning_effort" not in body for body in provider.bodies)


async def test_the_effort_of_a_workflow_file_goes_to_the_worker_that_answers(app: Any, provider: Provider) -> None:
    await app().post(reasoning_effort="low")

    assert [body.get("reasoning_effort") for body in provider.bodies] == [None, "low"]


@pytest.mark.parametrize("journal", [True, False])
async def test_a_key_belongs_to_one_request_also_while_its_run_begins_and_finds_its_run_again(
    app: Any, provider: Provider, journal: bool
) -> None:
    headers, asked = {"Idempotency-Key": "one"}, app(journal=journal)

    replies = await asyncio.gather(*(asked.post(temperature=degree, headers=headers) for degree in (0.1, 0.2, 0.1)))

    assert [reply.status_code for reply in replies] == [200, 422, 200]
    assert replies[1].json()["error"]["code"] == "idempotency_key_reused"
    assert replies[0].json()["id"] == replies[2].json()["id"]
    again, other = [await asked.post(temperature=0.1, headers=each) for each in (headers, {})]
    assert again.json()["id"] == replies[0].json()["id"] != other.json()["id"]
    assert len(provider.bodies) == (4 if journal else 6)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_journal_that_has_ended_is_said_by_requests_and_by_ready(app: Any, stream: bool) -> None:
    found = app()
    found.journal.close()

    reply = await found.post(stream=stream)
    ready = await found.get("/ready")

    assert "journal_failed" in reply.text
    assert stream or (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    assert (ready.status_code, ready.json()) == (503, {"status": "journal_ended"})


async def test_only_the_last_requests_are_remembered(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_app, "_REMEMBERED", 2)
    found = app()

    async def asked(seed: int, **headers: str) -> str:
        return str((await found.post(seed=seed, headers=headers)).json()["id"])

    first = [await asked(seed) for seed in range(3)]
    again = [await asked(seed, **{"x-stainless-retry-count": "1"}) for seed in (2, 0)]

    assert again[0] == first[2]
    assert again[1] not in first
