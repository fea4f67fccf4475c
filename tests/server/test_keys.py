"""What a key may do: its budget, and that it is revoked at once."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.conftest import Command, files, wfdsl  # noqa: F401  (fixtures)
from wfdsl.experiment import KeyLimits, ServeSettings
from wfdsl.interpreter.budget import Budget, BudgetSpent, BudgetTracker, BudgetUsage
from wfdsl.interpreter.journal import Journal
from wfdsl.server.api_errors import ApiError
from wfdsl.server.app import build_app
from wfdsl.server.keys import ApiKeys, Caller, KeyUsage, make_key, revoke_key

from .conftest import FILES, ServerProcess, prepare
from .provider import Provider

ASK: Any = [{"role": "user", "content": "Why?"}]
DAY_S = 86_400.0
REQUESTS = 48
CALL_USD = 18e-6
"""Of 10 tokens of input and 4 of output."""


class Clock:
    """A clock that stands."""

    now = 10 * DAY_S  # 1970-01-11, 00:00 UTC

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as found:
        yield found


def caller(**limits: Any) -> Caller:
    return Caller("ann", KeyLimits(hash="0" * 64, **limits))


def test_a_key_is_made_once_and_only_its_hash_is_kept(wfdsl: Command, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "keys.toml"
    options = ("--usd", "5", "--expires", "2100-01-31")

    key = wfdsl("serve", "keys", "make", "ann", "--keys", str(file), *options).out.strip()
    again = wfdsl("serve", "keys", "make", "ann", "--keys", str(file))
    wfdsl("serve", "keys", "make", "b-2", "--keys", str(file), "--usd", "0")
    listed = wfdsl("serve", "keys", "list", "--keys", str(file))
    rows = [json.loads(line) for line in wfdsl("serve", "keys", "list", "--json", "--keys", str(file)).out.splitlines()]

    assert key not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert again.code == 2
    assert "there is a key 'ann' already" in again.err
    assert "usd 5.0, per month" in listed.out
    assert [(row["name"], row["usd"]) for row in rows] == [("ann", 5.0), ("b-2", 0.0)]
    assert "hash" not in rows[0]
    found = ApiKeys(str(file), print).caller(f"Bearer {key}")
    assert found.limits is not None
    assert (found.name, found.limits.usd, found.limits.expires) == ("ann", 5.0, "2100-01-31")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("make", "two words", "--keys", "k.toml"), "letters, digits, - and _"),
        (("make", "ann"), "keys make needs --keys FILE"),
        (("make", "ann", "--keys", "k.toml", "--expires", "2026-13-01"), "2027-01-31"),
        (("make", "ann", "--keys", "k.toml", "--expires", "2026-01-31"), "expired on 2026-01-31 already"),
        (("revoke", "ann", "--keys", "k.toml"), "cannot read this file of keys"),
        (("list", "--keys", "bad.toml"), "bad.toml: ann.hash must be given"),
    ],
)
def test_a_wrong_command_on_keys_is_told(wfdsl: Command, files: Path, arguments: tuple[str, ...], said: str) -> None:  # noqa: F811
    (files / "bad.toml").write_text("[ann]\n")

    done = wfdsl("serve", "keys", *arguments)

    assert done.code == 2
    assert said in done.err


def test_a_revoked_key_is_refused_at_once_and_all_else_in_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.symlink_to("of-the-lab.toml")
    first, second = make_key(str(path), "ann", {}), make_key(str(path), "bob", {"usd": 1.0})
    path.write_text(f"# of the lab\n{path.read_text()}".replace("\n[bob]", "\n# on leave\n[bob]"))
    keys = ApiKeys(str(path), print)
    revoke_key(str(path), "ann")
    third = make_key(str(path), "cid", {})

    with pytest.raises(ApiError, match="not accepted"):
        keys.caller(f"Bearer {first}")
    assert [path.is_symlink(), *(keys.caller(f"Bearer {key}").name for key in (second, third))] == [True, "bob", "cid"]
    assert [line for line in path.read_text().splitlines() if line[:1] in ("#", "[")] == [
        *("# of the lab", "# on leave", "[bob]", "[cid]")
    ]


@pytest.mark.parametrize("broken", ["[ann", None])
async def test_no_key_is_accepted_while_their_file_cannot_be_read(tmp_path: Path, broken: str | None) -> None:
    path, said = tmp_path / "keys.toml", list[str]()
    key = make_key(str(path), "ann", {})
    text = path.read_text()
    keys = ApiKeys(str(path), said.append)
    app = build_app({}, ServeSettings(), keys=keys, journal=None, log=lambda _: None)
    found = []
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://x/") as client:
        for content in (text, broken, text):
            path.unlink() if content is None else path.write_text(content)
            reply = await client.get("v1/models", headers={"Authorization": f"Bearer {key}"})
            found.append((reply.status_code, (await client.get("ready")).json()["status"]))

    assert found == [(200, "starting"), (503, "keys_unreadable"), (200, "starting")]
    assert len(said) == 1


async def test_a_key_that_has_expired_is_refused(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "keys.toml"
    key = make_key(str(path), "ann", {"expires": "2100-01-31"})
    path.write_text(path.read_text().replace("2100-01-31", "1970-01-12"))
    keys = ApiKeys(str(path), print, clock=clock)

    assert keys.caller(f"Bearer {key}").name == "ann"
    clock.now += DAY_S
    with pytest.raises(ApiError) as caught:
        keys.caller(f"Bearer {key}")
    assert (caught.value.status, caught.value.code) == (401, "api_key_expired")


@pytest.mark.parametrize(("per", "days"), [("day", 1), ("month", 21)])
async def test_a_budget_begins_again_with_its_period(journal: Journal, per: str, days: int) -> None:
    clock = Clock()
    usage, ann = KeyUsage(journal, clock=clock), caller(usd=1.0, per=per)
    account = (await usage.allowed(ann)).account
    assert account is not None
    await account.reserve(BudgetUsage(1, 1, 1.0))
    account.settle(BudgetUsage(1, 1, 1.0), BudgetUsage(1, 1, 1.0))

    clock.now += days * DAY_S - 1
    with pytest.raises(ApiError) as caught:
        await usage.allowed(ann)
    clock.now += 1
    assert (await usage.allowed(ann)).account is not account
    assert (caught.value.status, caught.value.code) == (429, "insufficient_quota")


async def test_what_one_server_has_reserved_another_cannot_take(journal: Journal) -> None:
    bound, cost = BudgetUsage(1, 1, 0.6), BudgetUsage(1, 1, 0.1)
    with Journal(journal.path) as other:
        first, second = [(await KeyUsage(each).allowed(caller(usd=1.0))).account for each in (journal, other)]
        assert isinstance(first, BudgetTracker)
        assert isinstance(second, BudgetTracker)
        await first.reserve(bound)

        with pytest.raises(BudgetSpent):
            await second.reserve(bound)
        first.settle(bound, cost)
        await KeyUsage(journal).allowed(caller(usd=1.0))  # what was settled is in the journal by then
        await second.reserve(bound)


async def test_a_key_with_a_budget_needs_the_journal_that_keeps_what_is_spent() -> None:
    with pytest.raises(ApiError) as caught:
        await KeyUsage(None).allowed(caller(usd=1.0))

    assert (caught.value.status, caught.value.code) == (503, "journal_needed")


async def test_a_call_of_one_key_has_the_room_that_a_call_of_another_leaves(journal: Journal) -> None:
    usage = KeyUsage(journal, within=BudgetTracker(Budget(usd=3.0)))
    accounts = [
        (await usage.allowed(Caller(name, KeyLimits(hash="0" * 64, usd=3.0)))).account for name in ("ann", "bob")
    ]
    runs = [BudgetTracker(Budget(usd=2.0), within=account) for account in accounts]
    bound, cost = BudgetUsage(1, 1, 2.0), BudgetUsage(1, 1, 0.5)
    await runs[0].reserve(bound)
    second = asyncio.create_task(runs[1].reserve(bound))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(second), 0.05)

    runs[0].settle(bound, cost)

    await asyncio.wait_for(second, 60)


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "kill"), [(2, False), (4, True)])
def test_servers_on_one_home_never_exceed_a_key_s_budget_together(
    provider: Provider, tmp_path: Path, processes: int, kill: bool
) -> None:
    prepare(tmp_path, provider.url)
    pool = tmp_path / "pool.toml"
    pool.write_text(pool.read_text().replace("retries = 0", "retries = 0\nmax_tokens = 10"))
    limit_usd = REQUESTS * CALL_USD  # enough for half of them, which are two calls each
    key = make_key(str(tmp_path / "keys.toml"), "ann", {"usd": limit_usd})
    options = (*FILES, "--keys", "keys.toml", "--quiet")
    servers = [ServerProcess(tmp_path, *options) for _ in range(processes)]

    def status(number: int) -> int:
        """How a request ends; 0: its server was killed."""
        if kill and number == REQUESTS // 4:
            servers[-1].process.send_signal(signal.SIGKILL)
        body: Any = {"model": "two", "messages": [{"role": "user", "content": f"Why {number}?"}]}
        address, headers = f"{servers[number % len(servers)].url}/chat/completions", {"Authorization": f"Bearer {key}"}
        try:
            return httpx2.post(address, json=body, headers=headers, timeout=120, verify=False).status_code
        except httpx2.TransportError:
            return 0

    with ThreadPoolExecutor(8) as threads:
        statuses = Counter(threads.map(status, range(REQUESTS)))
    for each in servers:
        each.stop()
    servers = [ServerProcess(tmp_path, *options)]
    afterwards = status(REQUESTS)
    servers[0].stop()

    assert set(statuses) - {0} == {200, 429}
    assert (statuses[0] > 0) is kill
    assert 0.5 * limit_usd < len(provider.bodies) * CALL_USD <= limit_usd
    assert afterwards == 429
