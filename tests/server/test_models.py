"""The models of a server: the list that clients read, and several Conductors and pools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from wfdsl.conductor.conductor import Conductor
from wfdsl.errors import UsageError
from wfdsl.experiment import read_experiment
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.limits import limits_of
from wfdsl.interpreter.worker_profile import profile_of
from wfdsl.server.app import build_app
from wfdsl.server.keys import ApiKeys, make_key
from wfdsl.server.models import ServedModel, card, served_models

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
    return [card(model) for model in found.values()]


@pytest.mark.usefixtures("folder")
def test_a_model_says_its_context_and_its_prices() -> None:
    conductor, workflow = cards()

    def about(card: dict[str, Any]) -> tuple[Any, ...]:
        return card["id"], card["context_window"], card["max_model_len"], card["pricing"]["workers"]

    ann = {"ann": {"input": 1.0, "output": 2.0}}
    assert about(conductor) == ("wfdsl", 4096, 4096, {"boss": None, **ann, "bob": None})
    assert about(workflow) == ("one", 8192, 8192, ann)
    assert cards("serve.context_window=1000")[1]["context_window"] == 1000


SMALL = """
[pool]
name = "small"

[[pool.workers]]
name = "ann"
provider = "openai"
model = "m"
base_url = "http://127.0.0.1:9/v1"
limits = { concurrency = 1, requests_per_minute = 5 }

[[pool.workers]]
name = "cid"
provider = "scripted"
tags = ["slow"]
prices = { input = 0.0, output = 0.0 }
options = { replies = ["cid's reply"], repeat = true, context = 1024 }
"""
SERVER = """
[pool]
use = "pool.toml"
[conductor]
max_rounds = 0
[budget]
usd = 0.5
calls = 9

[serve.models.wfdsl]

[serve.models.cheap]
description = "The cheap one"
side_requests = "conductor"
pool.use = "small.toml"
conductor.model = "cid.wf"
budget.usd = 0.25

[serve.models."eager-2.1"]
context_window = 99
conductor.effort = "high"
"""
TWINS = """
[serve.models.twin]
pool.use = "small.toml"
conductor.model = "ann"

[serve.models.other]
pool.use = "same.toml"
conductor.model = "ann"
"""


@pytest.fixture
def several(folder: Path) -> Path:
    (folder / "small.toml").write_text(SMALL)
    (folder / "same.toml").write_text(SMALL.replace('"small"', '"same"'))
    (folder / "cid.wf").write_text('step only by cid: "Reply."\n')
    (folder / "server.toml").write_text(SERVER)
    return folder


def several_models(*settings: str) -> dict[str, ServedModel]:
    return served_models(read_experiment("server.toml", settings), ["one.wf"])


@pytest.mark.usefixtures("several")
def test_each_table_of_models_is_a_model_with_its_own_keys_over_the_file() -> None:
    found = several_models()

    assert list(found) == ["wfdsl", "cheap", "eager-2.1", "one"]
    assert [model.pool.name for model in found.values()] == ["two", "small", "two", "two"]
    half, quarter = Budget(usd=0.5, calls=9), Budget(usd=0.25, calls=9)
    assert [model.experiment.budget for model in found.values()] == [half, quarter, half, half]
    efforts = [model.experiment.conductor.limits for model in found.values()]
    assert [limits.max_rounds for limits in efforts] == [None, None, 2, None]
    cards = {name: card(model) for name, model in found.items()}
    assert len(cards) == 4
    assert (cards["cheap"]["description"], cards["cheap"]["context_window"]) == ("The cheap one", 1024)
    assert list(cards["cheap"]["pricing"]["workers"]) == ["cid"]
    assert cards["eager-2.1"]["context_window"] == 99
    assert cards["wfdsl"]["description"] == "A Conductor (boss) on the pool two, which has 3 workers"


@pytest.mark.usefixtures("several")
def test_options_of_the_command_hold_for_all_models() -> None:
    found = several_models("budget.usd=1", "pool.use=same.toml", "conductor.model=cid.wf")

    assert {model.experiment.budget.usd for model in found.values()} == {1}
    assert {model.pool.name for model in found.values()} == {"same"}


async def test_models_have_clients_and_limits_in_common(several: Path) -> None:
    (several / "server.toml").write_text(SERVER + TWINS)
    found = several_models()
    plain, eager, twin, other = (found[name] for name in ("wfdsl", "eager-2.1", "twin", "other"))

    assert plain.pool is eager.pool
    assert found["cheap"].pool is twin.pool
    conducting = [model.policy for model in (plain, eager, twin, other)]
    clients = [policy._model.worker(0) for policy in conducting if isinstance(policy, Conductor)]
    assert clients[0] is clients[1]
    assert clients[2] is clients[3] is not clients[0]
    limits = [limits_of(profile_of(pool, 0), pool.worker(0)) for pool in (twin.pool, other.pool)]
    assert twin.pool is not other.pool
    assert limits[0] is limits[1]  # one model at one server, described by two files


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[serve.models.x]\nport = 1", 'serve.models.x has no key "port"'),
        ("[serve.models.x.conductor]\nefort = 'low'", "Did you mean effort?"),
        ("[serve.models.x]\nconductor.effort = 'some'", "conductor.effort must be"),
        ("[serve.models.x]\nconductor = 'ann'", "conductor must be a table"),
        ("[serve.models.x.pool]\nname = 'p'", 'serve.models.x: pool has one key, "use"'),
        ("[serve.models.x]\npool.use = 'absent'", 'serve.models.x: there is no pool "absent"'),
        ("[serve.models.x]\nrun.journal = false", "run.journal holds for the whole server"),
        ("[serve.models.x]\nconductor.model = 'absent'", "the model 'x': no Conductor 'absent'"),
        ("[serve]\nmodels = 1", "serve.models must be a table"),
        ("[serve.models.one]", "there is a model 'one' already"),
    ],
)
@pytest.mark.usefixtures("several")
def test_what_is_wrong_with_a_table_of_models_is_said(table: str, message: str) -> None:
    Path("server.toml").write_text(f'[pool]\nuse = "pool.toml"\n{table}\n')

    with pytest.raises(UsageError) as refused:
        several_models()
    assert message in str(refused.value)


def test_models_are_not_reached_by_settings() -> None:
    with pytest.raises(UsageError, match="models"):
        read_experiment(None, ["serve.models.x.budget.usd=1"])


@pytest.mark.usefixtures("several")
async def test_a_key_is_for_its_models() -> None:
    files: tuple[dict[str, Any], ...] = (
        {"models": ("cheap",)},
        {"metrics": True},
    )
    keys = [make_key("keys.toml", f"k{index}", limits) for index, limits in enumerate(files)]
    found = several_models()
    app: Any = build_app(
        found,
        read_experiment("server.toml").serve,
        keys=ApiKeys("keys.toml", print),
        journal=None,
        log=lambda _: None,
    )

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x/", timeout=60) as client:

        async def get(path: str, key: str) -> httpx.Response:
            return await client.get(path, headers={"Authorization": f"Bearer {key}"})

        async def ask(model: str, key: str) -> tuple[int, str]:
            """The status, and the answer or the code of the error."""
            body = {"model": model, "messages": [{"role": "user", "content": "Why?"}]}
            reply = await client.post("v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"})
            told = reply.json()
            said = told["error"]["code"] if "error" in told else told["choices"][0]["message"]["content"]
            return reply.status_code, said

        listed = [card["id"] for card in (await get("v1/models", keys[0])).json()["data"]]
        assert listed == ["cheap"]
        assert (await get("v1/models/one", keys[0])).json()["error"]["code"] == "model_not_allowed"
        assert await ask("one", keys[0]) == (403, "model_not_allowed")
        assert await ask("cheap", keys[0]) == (200, "cid's reply")
        own, every = [await get("metrics", key) for key in keys]
    assert (own.status_code, own.json()["error"]["code"]) == (403, "metrics_not_allowed")
    assert 'wfdsl_calls_total{model="cheap",status="done",worker="cid"} 1.0' in every.text
