"""`wfdsl ctl`: what it prints of a running server, and what it changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.rl.engines.conftest import RewardProcess, write_files
from wfdsl.server.api_keys import make_key

from .conftest import Command

pytestmark = pytest.mark.slow
LEASE = {"holder": "node1", "worker": "ann", "calls": [[100, 0.25]]}


@pytest.fixture
def server_with_keys(tmp_path: Path) -> Iterator[tuple[RewardProcess, dict[str, str]]]:
    """A server and its keys by name; that of `ops` is an admin's."""
    write_files(tmp_path, "http://127.0.0.1:9/v1")
    keys = {name: make_key(str(tmp_path / "keys.toml"), name, {"admin": name == "ops"}) for name in ("ann", "ops")}
    found = RewardProcess(tmp_path, "--port", "0", "--keys", "keys.toml", "--budget-usd", "1")
    yield found, keys
    found.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardProcess]:
    folder = tmp_path_factory.mktemp("served")
    write_files(folder, "http://127.0.0.1:9/v1")
    found = RewardProcess(folder, "--port", "0", "--budget-usd", "5", "--budget-calls", "10", "--budget-tokens", "1000")
    yield found
    found.stop()


def test_limits_show_all_of_the_budget_and_what_is_reserved(server: RewardProcess, wfdsl: Command) -> None:
    def ask(path: str, body: object) -> None:
        httpx.post(f"{server.url}/v1/{path}", json=body, timeout=60).raise_for_status()

    before = wfdsl("ctl", "limits", "--server", server.url).out
    ask("leases", LEASE)
    shown = wfdsl("ctl", "limits", "--server", server.url).out
    holders = wfdsl("ctl", "leases", "--server", server.url).out
    lease = {"lease": "1", "calls": 1, "tokens": 50, "usd": 0.2}
    ask("leases/settle", {"holder": "node1", "settled": [lease]})
    after = wfdsl("ctl", "limits", "--server", server.url).out

    assert "spent: $0.00 of $5.00, 0 of 10 calls, 0 of 1000 tokens" in before
    assert "reserved" not in before
    assert "reserved for calls in flight: $0.25, 1 call, 100 tokens" in shown
    assert holders.splitlines()[1].split()[:3] == ["node1", "1", "$0.25"]
    assert "spent: $0.20 of $5.00, 1 of 10 calls, 50 of 1000 tokens" in after


def test_limits_are_changed_and_shown_as_they_are_then(server: RewardProcess, wfdsl: Command) -> None:
    options = ("--worker", "bob", "--max-concurrency", "3", "--tokens-per-minute", "900")
    shown = wfdsl("ctl", "limits", *options, "--workflows", "7", "--server", server.url).out
    asked = json.loads(wfdsl("ctl", "limits", "--server", server.url, "--json").out)

    assert [line.split() for line in shown.splitlines() if line.startswith("bob")] == [
        ["bob", "3", "0,", "0", "waiting", "-", "900"]
    ]
    assert "workflows: 0 in flight of 7, 0 waiting" in shown
    assert asked["workers"]["bob"]["concurrency"] == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("limits", "--worker", "bob"), "--worker needs a limit"),
        (("limits", "--max-concurrency", "3"), "--max-concurrency needs --worker NAME"),
        (("leases", "--workflows", "3"), "leases are only listed"),
        (("limits", "--worker", "cid", "--max-concurrency", "3"), "workers has no 'cid' (known: ann, bob)"),
    ],
)
def test_what_cannot_be_changed_is_an_error(
    server: RewardProcess, wfdsl: Command, options: tuple[str, ...], said: str
) -> None:
    found = wfdsl("ctl", *options, "--server", server.url)

    assert (found.code, said in found.err) == (2, True), found.err


def test_a_key_that_is_not_an_admins_changes_nothing(
    server_with_keys: tuple[RewardProcess, dict[str, str]], wfdsl: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, keys = server_with_keys

    def change(name: str) -> tuple[int, str]:
        monkeypatch.setenv("WFDSL_SERVER_KEY", keys[name])
        done = wfdsl("ctl", "limits", "--budget-usd", "1000", "--server", found.url)
        return done.code, done.out + done.err

    refused, changed = change("ann"), change("ops")

    assert (refused[0], "the key 'ann' may not change limits" in refused[1]) == (2, True)
    assert (changed[0], "of $1000.00" in changed[1]) == (0, True)
