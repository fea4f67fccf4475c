"""Requests that slime's and OpenRLHF's own clients sent, recorded in `recorded`, are answered as these clients read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from .conftest import CALL_USD, Provider, RewardProcess, Serve, verdict

pytestmark = pytest.mark.slow
RECORDED = Path(__file__).parent / "recorded"


def replayed(server: RewardProcess, engine: str) -> Iterator[Any]:
    """What the server answers to each of the requests, byte for byte as the client sent them."""
    recorded = json.loads((RECORDED / f"{engine}.json").read_text(encoding="utf-8"))
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    for each in recorded["requests"]:
        connection.request(each["method"], each["path"], each["body"].encode(), each["headers"])
        answer = connection.getresponse()
        content = answer.read()
        assert (answer.status, answer.getheader("content-type")) == (200, "application/json"), content
        yield json.loads(content)
    connection.close()


def test_slime_gets_a_number_for_each_sample(serve: Serve, provider: Provider) -> None:
    assert verdict("Solve it now.") == "yes"

    found = list(replayed(serve(), "slime"))

    assert found == [1.0, 1.0, 0.0, 1.0]
    assert len(provider.asked) == 1 + 2 + 0 + 1


def test_openrlhf_gets_rewards_scores_and_numbers_to_log_of_each_batch(serve: Serve, provider: Provider) -> None:
    found = list(replayed(serve(), "openrlhf"))

    assert [each["rewards"] for each in found] == [each["scores"] for each in found] == [[1.0], [1.0], [0.0]]
    assert [each["extra_logs"] for each in found] == [
        {"steps": [1.0], "valid": [1.0], "right": [1.0], "cost_usd": [pytest.approx(CALL_USD)]},
        {"steps": [2.0], "valid": [1.0], "right": [1.0], "cost_usd": [pytest.approx(2 * CALL_USD)]},
        {"steps": [0.0], "valid": [0.0], "right": [0.0], "cost_usd": [0.0]},
    ]
    assert len(provider.asked) == 1 + 2 + 0
