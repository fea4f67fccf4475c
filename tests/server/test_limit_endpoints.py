"""The addresses of limits and leases: who may change or end what, and which numbers are numbers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from wfdsl.experiment import ServeSettings
from wfdsl.interpreter.budget import Budget, BudgetUsage
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter, WorkerLimits
from wfdsl.server.api_keys import ApiKeys, make_key
from wfdsl.server.endpoints import Endpoints
from wfdsl.server.key_usage import KeyUsage
from wfdsl.server.leases import Leases
from wfdsl.server.limit_endpoints import LimitEndpoints
from wfdsl.server.limit_metrics import limit_readings
from wfdsl.server.live_limits import LiveLimits
from wfdsl.server.metrics import Metrics
from wfdsl_rl.reward import budget_tracker

from .test_leases import CALL, now, profile

ASK = {"holder": "node", "worker": "ann", "calls": [CALL]}
KEYS: Mapping[str, dict[str, Any]] = {"ops": {"admin": True}, "ann": {"usd": 0.6}, "bob": {}}


class Server:
    """The endpoints of one worker's limits, without a process of their own."""

    def __init__(self, folder: Path, journal: Journal, keys: Mapping[str, dict[str, Any]]) -> None:
        path = folder / "keys.toml"
        self.keys = {name: make_key(str(path), name, each) for name, each in keys.items()}
        self.metrics = Metrics()
        found = Endpoints(ServeSettings(), ApiKeys.load(str(path)) if keys else None, self.metrics, lambda _: None)
        budget = budget_tracker(Budget(usd=1.0), journal)
        usage = KeyUsage(journal, within=budget)
        workers = {"ann": WorkerLimits(profile(concurrency=8), now)}
        self.ends = LimitEndpoints(found, lambda request: usage.allowance(found.caller(request)))
        self.ends.limits = LiveLimits(workers, budget, ConcurrencyLimiter(4))
        self.ends.leases = self.leases = Leases(workers, budget, journal)
        transport = httpx.ASGITransport(found.app(self.ends.routes, lambda _: self.leases.running()))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8700/v1/")

    async def ask(self, method: str, path: str, body: Any = None, key: str = "", **headers: str) -> httpx.Response:
        found = {**headers, **({"authorization": f"Bearer {self.keys[key]}"} if key else {})}
        if isinstance(body, str):
            return await self._client.request(method, path, content=body, headers=found)
        return await self._client.request(method, path, json=body, headers=found)

    async def take(self, key: str = "", **more: Any) -> list[str]:
        found: list[str] = (await self.ask("POST", "leases", {**ASK, **more}, key)).json()["leases"]
        return found


@asynccontextmanager
async def _running(folder: Path, keys: Mapping[str, dict[str, Any]]) -> AsyncIterator[Server]:
    with Journal(folder / "j.db") as journal:
        server = Server(folder, journal, keys)
        async with server.leases.running():
            yield server


Running = Callable[..., Any]


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return lambda keys=None: _running(tmp_path, keys or {})


def told(lease: str, **more: Any) -> dict[str, Any]:
    return {"lease": lease, "calls": 1, "tokens": 50, "usd": 0.25, **more}


async def test_only_an_admins_key_changes_limits(running: Running) -> None:
    async with running(KEYS) as server:
        change = {"budget": {"usd": 1000.0}}
        refused = [await server.ask("PATCH", "limits", change, key) for key in ("ann", "bob")]
        without = await server.ask("PATCH", "limits", change)
        before = (await server.ask("GET", "limits", key="ann")).json()["budget"]["usd"]
        changed = await server.ask("PATCH", "limits", change, "ops")

        assert [(each.status_code, each.json()["error"]["code"]) for each in refused] == [(403, "not_admin")] * 2
        assert "wfdsl serve keys make" in refused[0].json()["error"]["message"]
        assert without.status_code == 401
        assert before == 1.0
        assert changed.json()["budget"]["usd"] == 1000.0


async def test_without_keys_everyone_changes_limits(running: Running) -> None:
    async with running() as server:
        assert (await server.ask("PATCH", "limits", {"workflows": 9})).json()["workflows"]["limit"] == 9


async def test_a_lease_is_ended_only_by_its_holder_and_with_its_key(running: Running) -> None:
    async with running(KEYS) as server:
        (lease,) = await server.take("bob")
        for key, holder in (("bob", "other"), ("ops", "node"), ("ann", "node"), ("ann", "bob/node")):
            body = {"holder": holder, "settled": [told(lease)]}
            assert (await server.ask("POST", "leases/settle", body, key)).json() == {"expired": [lease]}
        assert server.leases.budget.reserved.usd == CALL[1]

        body = {"holder": "node", "settled": [told(lease)]}
        assert (await server.ask("POST", "leases/settle", body, "bob")).json() == {"expired": []}
        assert server.leases.budget.spent == BudgetUsage(1, 50, 0.25)


async def test_holders_of_two_keys_that_have_one_name_are_two(running: Running) -> None:
    async with running(KEYS) as server:
        first, other = await server.take("bob", request="r"), await server.take("ops", request="r")
        holders = (await server.ask("GET", "leases", key="ops")).json()["holders"]

        assert first != other
        assert [each["holder"] for each in holders] == ["bob/node", "ops/node"]


NUMBERS = ["Infinity", "-Infinity", "NaN", "1e999", "1e30", "-1", "9" * 400, '"1"', "true", "null"]


@pytest.mark.parametrize("number", NUMBERS)
async def test_numbers_that_are_none_or_too_large_are_refused_and_change_nothing(running: Running, number: str) -> None:
    async with running() as server:
        (lease,) = await server.take()
        before = (await server.ask("GET", "limits")).json()
        bounds = [f"[{number}, 0.5]", f"[100, {number}]"]
        amounts = [f'"calls": {number}, "tokens": 5, "usd": 0.1', f'"calls": 1, "tokens": {number}, "usd": 0.1']
        amounts += [f'"calls": 1, "tokens": 5, "usd": {number}']
        bodies = [("leases", f'{{"holder": "node", "worker": "ann", "calls": [{each}]}}') for each in bounds]
        bodies += [
            ("leases/settle", f'{{"holder": "node", "settled": [{{"lease": "{lease}", {each}}}]}}') for each in amounts
        ]
        for path, body in bodies:
            refused = await server.ask("POST", path, body)
            assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error"), body

        assert (await server.ask("GET", "limits")).json() == before


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999", "1" + "0" * 30])
@pytest.mark.parametrize(
    "where", ['"budget": {"usd": %s}', '"workflows": %s', '"workers": {"ann": {"concurrency": %s}}']
)
async def test_limits_that_are_no_numbers_are_refused(running: Running, number: str, where: str) -> None:
    async with running() as server:
        refused = await server.ask("PATCH", "limits", f"{{{where % number}}}")

        assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_a_long_wait_that_a_provider_asks_for_is_not_kept_and_a_changed_concurrency_ends_any(
    running: Running,
) -> None:
    async with running() as server:
        first, second = await server.take(), await server.take()
        settle = {"holder": "node", "settled": [told(first[0], status=429, retry_after=1e7)]}
        await server.ask("POST", "leases/settle", settle)
        assert server.leases._workers["ann"].held_s < 60
        settle = {"holder": "node", "settled": [told(second[0], status=429, retry_after=500)]}
        await server.ask("POST", "leases/settle", settle)
        assert server.leases._workers["ann"].held_s > 400
        await server.ask("PATCH", "limits", {"workers": {"ann": {"requests_per_minute": 100}}})
        assert server.leases._workers["ann"].held_s > 400
        own_call = asyncio.create_task(server.leases._workers["ann"].concurrency.resumed())

        await server.ask("PATCH", "limits", {"workers": {"ann": {"concurrency": 4}}})

        assert server.leases._workers["ann"].held_s == 0
        await asyncio.wait_for(own_call, 60)
        assert len(await server.take()) == 1


async def test_pages_of_other_sites_reach_no_server_without_keys(running: Running) -> None:
    fine = [{}, {"host": "localhost:8700"}, {"host": "[::1]:8700"}, {"origin": "http://127.0.0.1:8700"}]
    foreign = [{"host": "evil.example"}, {"host": "evil.example:8700"}, {"host": "127.0.0.1.evil.example"}]
    foreign += [{"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://127.0.0.1:3000"}]
    foreign += [{"origin": "http://[::1"}]  # not an address
    async with running() as server:
        for headers in fine:
            assert (await server.ask("GET", "limits", **headers)).status_code == 200, headers
        for headers in foreign:
            sent = {"content-type": "text/plain", **headers}
            refused = await server.ask("POST", "leases", '{"holder": "n", "worker": "ann", "calls": [[1, 0]]}', **sent)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "foreign_site"), headers
        assert server.leases.budget.reserved.calls == 0


async def test_with_keys_any_name_of_the_server_will_do_and_kept_passwords_are_not_sent_by_other_sites(
    running: Running,
) -> None:
    async with running(KEYS) as server:
        other = {"host": "node1:8700", "origin": "http://evil.example"}
        assert (await server.ask("GET", "limits", key="bob", **other)).status_code == 200
        basic = httpx.BasicAuth("any", server.keys["bob"])._auth_header
        refused = await server.ask("GET", "limits", authorization=basic, **other)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "foreign_site")
        assert (await server.ask("GET", "limits", authorization=basic, host="node1:8700")).status_code == 200


async def test_metrics_have_the_limits_the_budget_and_the_leases(running: Running) -> None:
    async with running() as server:
        await server.take(calls=[CALL])
        server.metrics.add(lambda: limit_readings(server.ends.limits, server.leases))
        page = dict(
            line.rsplit(" ", 1) for line in (await server.ask("GET", "http://127.0.0.1:8700/metrics")).text.splitlines()
        )

    found = {name: float(page[name]) for name in GAUGES}
    assert found == GAUGES


GAUGES = {
    "wfdsl_budget_limit_usd": 1.0,
    "wfdsl_budget_spent_usd": 0.0,
    "wfdsl_budget_reserved_usd": 0.5,
    "wfdsl_budget_reserved_calls": 1.0,
    'wfdsl_worker_concurrency_limit{worker="ann"}': 8.0,
    'wfdsl_worker_calls_in_flight{worker="ann"}': 1.0,
    'wfdsl_worker_calls_waiting{worker="ann"}': 0.0,
    'wfdsl_worker_held_seconds{worker="ann"}': 0.0,
    "wfdsl_workflows_limit": 4.0,
    "wfdsl_workflows_in_flight": 0.0,
    "wfdsl_lease_holders": 1.0,
    "wfdsl_leases_open": 1.0,
}
