"""The pages of the gym: presets, workers, families with examples, and the best workflows that are known."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from html import unescape

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from wfdsl import analyze
from wfdsl.viewer.app import Viewer
from wfdsl_rl.gym.world.families import recognise
from wfdsl_rl.gym.world.optimum import optimum, workflow_of
from wfdsl_rl.gym.world.presets import PRESETS
from wfdsl_rl.viewer.gym import pages


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    viewer = Viewer(tmp_path_factory.mktemp("home") / "journal.db", [pages([])])
    client = TestClient(Starlette(routes=[viewer.mount()]), base_url="http://127.0.0.1:8601")
    client.get(viewer.path)
    yield client
    viewer.close()


def test_every_preset_has_a_page_with_its_workers_and_families(client: TestClient) -> None:
    everything = client.get("/view/gym").text

    for name, preset in PRESETS.items():
        address = f"/view/gym/{name.removeprefix('gym/')}"
        assert f'<a href="{address}">{name}</a>' in everything
        page = client.get(address).text
        assert preset.content_hash in page
        assert all(preset.profile(index).name in page for index in range(len(preset.members)))
        families = [family for found in preset.ease.values() for family in found]
        assert re.findall(rf'href="{address}/([a-z-]+)"', page) == families
        assert "Workers are simulated" in page


@pytest.mark.parametrize("name", ["paper7", "axes"])
def test_a_preset_shows_the_best_accuracies_that_are_known(client: TestClient, name: str) -> None:
    page = client.get(f"/view/gym/{name}").text

    known = optimum(f"gym/{name}")
    for family, found in known.families.items():
        (row,) = re.findall(rf'<tr><th scope="row"><a href="/view/gym/{name}/{family}">.*?</tr>', page)
        shown = re.findall(r'<td class="number">([0-9.]+)</td>', row)
        assert shown[: len(found)] == [f"{100 * one.accuracy:.1f}" for _, one in sorted(found.items())]
    assert f"The mean is {100 * known.accuracy():.1f} %" in page
    assert "searched for" not in page
    assert "were not searched for" in client.get("/view/gym/shifted").text


def test_a_family_shows_questions_of_its_own_and_workflows_that_the_playground_opens(client: TestClient) -> None:
    page = client.get("/view/gym/axes/chain").text

    questions = [unescape(text) for text in re.findall(r"<pre dir=\"auto\">\n(.*?)</pre>", page, re.DOTALL)]
    items = [recognise(question) for question in questions]
    assert len(items) == 3
    for item in items:
        assert item is not None
        assert item.family == "chain"
        assert f'Answer: <span dir="auto">{item.gold}</span>' in unescape(page)
    best = [*dict.fromkeys(one for _, one in sorted(optimum("gym/axes").families["chain"].items()))]
    assert len(best) > 1
    links = re.findall(r'href="/view/playground#completion=([\w-]+)"', page)
    opened = [analyze(urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()).workflow for text in links]
    assert opened == [workflow_of(one.team) for one in best]
    assert page.count("<svg") == len(best)


@pytest.mark.parametrize("path", ["none", "axes/algebra", "axes/none", "paper7/chain"])
def test_what_the_gym_does_not_have_is_named(client: TestClient, path: str) -> None:
    assert client.get(f"/view/gym/{path}").status_code == 404
