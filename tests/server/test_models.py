"""The list of models: what clients read of it, and the names with a date."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from wfdsl.experiment import read_experiment
from wfdsl.server.api_errors import ApiError
from wfdsl.server.model_cards import ModelCards
from wfdsl.server.served_model import served_models

NOON = 1_790_000_000  # 2026-09-21, 14:13 UTC
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
    for file in tmp_path.iterdir():
        os.utime(file, (NOON, NOON))
    return tmp_path


def cards(*settings: str) -> ModelCards:
    return ModelCards(served_models(read_experiment(None, ["pool.use=pool.toml", *settings]), ["one.wf"]))


@pytest.mark.usefixtures("folder")
def test_a_model_says_its_context_and_its_prices() -> None:
    conductor, workflow = cards().all()[:2]

    def about(card: dict[str, Any]) -> tuple[Any, ...]:
        return card["id"], card["context_window"], card["max_model_len"], card["pricing"]["workers"]

    ann = {"ann": {"input": 1.0, "output": 2.0}}
    assert about(conductor) == ("wfdsl", 4096, 4096, {"boss": None, **ann, "bob": None})
    assert about(workflow) == ("one", 8192, 8192, ann)
    assert cards("serve.context_window=1000").card("one")["context_window"] == 1000


@pytest.mark.usefixtures("folder")
def test_each_model_has_a_name_with_the_date_of_its_last_change() -> None:
    found = cards()

    assert [card["id"] for card in found.all()] == ["wfdsl", "one", "wfdsl-2026-09-21", "one-2026-09-21"]
    assert {card["created"] for card in found.all()} == {NOON}
    assert found.model("one-2026-09-21") is found.model("one")


def test_a_name_with_a_date_is_refused_once_the_model_has_changed(folder: Path) -> None:
    day = 86_400
    os.utime(folder / "one.wf", (NOON + day, NOON + day))

    with pytest.raises(ApiError, match="has changed: ask for 'one-2026-09-22', or for 'one'") as caught:
        cards().model("one-2026-09-21")

    assert (caught.value.status, caught.value.code) == (404, "model_not_found")
    assert cards().model("wfdsl-2026-09-21").id == "wfdsl"
