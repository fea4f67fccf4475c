"""The limits of a reward server's keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wfdsl.server.keys import make_key
from wfdsl_rl.engines.client import ServerRefused

from .conftest import BOUND_USD, CALL_USD, Provider, Serve, completion, post

pytestmark = pytest.mark.slow


def test_a_key_spends_its_budget_and_sends_its_requests_in_any_minute(
    serve: Serve, provider: Provider, tmp_path: Path
) -> None:
    limit_usd = BOUND_USD + 2 * CALL_USD
    limits: dict[str, Any] = {
        "ann": {"usd": limit_usd},
        "cid": {"requests_per_minute": 2},
        "dan": {"models": ("wfdsl",)},
    }
    keys = {name: make_key(str(tmp_path / "keys.toml"), name, each) for name, each in limits.items()}
    bearer = {name: {"authorization": f"Bearer {key}"} for name, key in keys.items()}
    server = serve("--keys", "keys.toml")
    samples = [{"task": "t0", "completion": completion(f"Do {number}.")} for number in range(20)]
    with pytest.raises(ServerRefused, match=r"the budget of \$0\.128 has") as spent:
        server.client(key=keys["ann"]).score_sync(samples)
    paid = len(provider.asked)
    sample = {"completion": "no lists", "task": "t0"}
    answers = [post(f"{server.url}/v1/score", json=sample, headers=bearer["cid"]) for _ in range(3)]
    other = post(f"{server.url}/v1/score", json=sample, headers=bearer["dan"])
    server.stop()
    again = serve("--keys", "keys.toml").client(key=keys["ann"])
    with pytest.raises(ServerRefused, match=r"the budget of \$0\.128 has"):
        again.score_sync([{"task": "t0", "completion": completion("Do this after the restart.")}])

    assert spent.value.code == "insufficient_quota"
    assert 0 < paid * CALL_USD <= limit_usd
    assert len(provider.asked) == paid
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert int(answers[2].headers["retry-after"]) > 0
    assert (other.status_code, other.json()["error"]["code"]) == (403, "model_not_allowed")
