"""The models of a server: the list that clients read, and who may read what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from wfdsl.errors import UsageError
from wfdsl.experiment import read_experiment
from wfdsl.server.app import build_app
from wfdsl.server.keys import ApiKeys, make_key
from wfdsl.server.models import served_models

POOL = """
[pool]
name = "two"
conductor = "boss"

[[pool.workers]]
name = "ann"
provider = "scripted"
prices = { input = 1.0, output = 2.0 }
options = { replies = ["x"], context = 8192 }

[[pool.workers]]
name = "bob"
provider = "scripted"
options = { replies = ["x"], context = 4096 }

[[pool.workers]]
name = "boss"
provider = "scripted"
options = { replies = ["x"] }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.toml").write_text(POOL)
    (tmp_path / "one.wf").write_text('step solve by ann: "Solve it."\n')
    return tmp_path


def cards(*settings: str) -> list[dict[str, Any]]:
    found = served_models(read_experiment(None, ["pool.use=pool.toml", *settings]), ["one.wf"])
    return [model.card() for model in found.values()]


@pytest.mark.usefixtures("folder")
def test_a_model_says_its_context() -> None:
    conductor, workflow = cards()

    def about(card: dict[str, Any]) -> tuple[Any, ...]:
        return card["id"], card["context_window"], card["max_model_len"]

    assert about(conductor) == ("wfdsl", 4096, 4096)
    assert about(workflow) == ("one", 8192, 8192)


@pytest.mark.usefixtures("folder")
def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="there is a model 'one' already"):
        served_models(read_experiment(None, ["pool.use=pool.toml"]), ["one.wf", "one.wf"])


def client_of(keys: ApiKeys | None, base_url: str) -> httpx2.AsyncClient:
    experiment = read_experiment(None, ["pool.use=pool.toml"])
    models = served_models(experiment, ["one.wf"])
    app: Any = build_app(models, experiment.serve, keys=keys, journal=None, log=lambda _: None)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=base_url, timeout=60)


@pytest.mark.usefixtures("folder")
async def test_only_a_key_that_may_reads_the_metrics() -> None:
    keys = [make_key("keys.toml", f"k{index}", {"metrics": bool(index)}) for index in range(2)]
    ask = {"model": "one", "messages": [{"role": "user", "content": "Why?"}]}

    async with client_of(ApiKeys("keys.toml", print), "http://x/") as client:
        headers = [{"Authorization": f"Bearer {key}"} for key in keys]
        await client.post("v1/chat/completions", json=ask, headers=headers[0])
        own, every = [await client.get("metrics", headers=each) for each in headers]

    assert (own.status_code, own.json()["error"]["code"]) == (403, "metrics_not_allowed")
    assert 'wfdsl_calls_total{model="one",status="done",worker="ann"} 1.0' in every.text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost:8600"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
    ],
)
async def test_without_keys_pages_of_other_sites_are_not_answered(headers: dict[str, str], status: int) -> None:
    async with client_of(None, "http://localhost:8600/") as client:
        assert (await client.get("v1/models", headers=headers)).status_code == status


@pytest.mark.usefixtures("folder")
async def test_a_key_may_be_the_password_of_a_url_which_a_browser_may_have_kept() -> None:
    key = make_key("keys.toml", "ann", {})
    bearer, foreign = {"Authorization": f"Bearer {key}"}, {"Origin": "http://evil.example"}
    ways: list[tuple[dict[str, Any], int]] = [
        ({"auth": ("any", key)}, 200),
        ({"auth": ("any", key), "headers": foreign}, 403),
        ({"headers": bearer | foreign}, 200),
        ({"auth": ("any", "wrong")}, 401),
    ]

    async with client_of(ApiKeys("keys.toml", print), "http://node1/") as client:
        for way, status in ways:
            assert (await client.get("v1/models", **way)).status_code == status, way
