"""The limits of a reward server's keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfdsl.server.keys import make_key
from wfdsl_rl.engines.client import ServerRefused

from .conftest import BOUND_USD, CALL_USD, Provider, Serve, completion

pytestmark = pytest.mark.slow


def test_a_key_spends_its_budget(serve: Serve, provider: Provider, tmp_path: Path) -> None:
    limit_usd = BOUND_USD + 2 * CALL_USD
    key = make_key(str(tmp_path / "keys.toml"), "ann", {"usd": limit_usd})
    server = serve("--keys", "keys.toml")
    samples = [{"task": "t0", "completion": completion(f"Do {number}.")} for number in range(20)]
    with pytest.raises(ServerRefused, match=r"the budget of \$0\.128 has") as spent:
        server.client(key=key).score_sync(samples)
    paid = len(provider.asked)
    server.stop()
    again = serve("--keys", "keys.toml").client(key=key)
    with pytest.raises(ServerRefused, match=r"the budget of \$0\.128 has"):
        again.score_sync([{"task": "t0", "completion": completion("Do this after the restart.")}])

    assert spent.value.code == "insufficient_quota"
    assert 0 < paid * CALL_USD <= limit_usd
    assert len(provider.asked) == paid
