"""Prices of the package genai-prices: which models have them, tiers, and that an own price wins."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import genai_prices
import pytest

from wfdsl import Pool
from wfdsl.cli.main import main
from wfdsl.protocols import Usage
from wfdsl.workers.entry import Prices, PriceTier
from wfdsl.workers.list_prices import list_prices

TEN = [
    ("openai", "gpt-5-mini", None),
    ("openai", "gpt-5.1", None),
    ("openai", "gpt-5.6-sol", None),
    ("anthropic", "claude-sonnet-4-0", None),
    ("anthropic", "claude-opus-4-0", None),
    ("google", "gemini-2.5-pro", None),
    ("google", "gemini-2.5-flash", None),
    ("openai", "qwen/qwen3-32b", "https://openrouter.ai/api/v1"),
    ("openai", "deepseek/deepseek-chat", "https://openrouter.ai/api/v1"),
    ("openai", "deepseek-chat", "https://api.deepseek.com"),
]
"""Models of five providers, two open ones through a router among them."""
UNKNOWN = [
    ("openai", "no-such-model", None),
    ("openai", "gpt-5-mini", "http://localhost:8000/v1"),
    ("openai", "", None),
    ("scripted", "gpt-5-mini", None),
]


@pytest.mark.parametrize(("provider", "model", "url"), TEN)
@pytest.mark.parametrize("tokens", [(1000, 500, 0, 0), (300_000, 7000, 0, 0), (300_000, 7000, 100_000, 50_000)])
def test_a_request_costs_what_genai_prices_says(
    provider: str, model: str, url: str | None, tokens: tuple[int, int, int, int]
) -> None:
    read, written, cached, kept = tokens
    prices = list_prices(provider, model, url)
    assert prices is not None
    assert prices.source.startswith("genai-prices 0.")
    if prices.cache_write is None:
        kept = 0
    usage = genai_prices.Usage(
        input_tokens=read, cache_write_tokens=kept, cache_read_tokens=cached, output_tokens=written
    )
    where: dict[str, Any] = {"provider_id": provider} if url is None else {"provider_api_url": url}

    expected = genai_prices.calc_price(usage, model, **where).total_price
    assert prices.usd(Usage(read, written, 0, cached, kept)) == pytest.approx(float(expected))


def test_the_day_on_which_the_package_looked_at_a_price_is_known() -> None:
    prices = list_prices("openai", "gpt-5-mini")

    assert prices is not None
    assert prices.as_of is not None
    assert dt.date(2026, 10, 1) < prices.as_of <= dt.datetime.now(dt.UTC).date()


@pytest.mark.parametrize(("provider", "model", "url"), UNKNOWN)
def test_a_model_that_is_not_on_it_has_none(provider: str, model: str, url: str | None) -> None:
    assert list_prices(provider, model, url) is None


def test_cached_tokens_and_long_prompts_have_prices_of_their_own() -> None:
    read, written = Usage(1_000_000, 0, 0, 400_000), Usage(1_000_000, 0, 0, 0, 400_000)
    assert Prices(input=2.0, output=10.0, cached=0.5).usd(read) == pytest.approx(0.6 * 2 + 0.4 * 0.5)
    assert Prices(input=2.0, output=1.0).usd(read) == pytest.approx(2.0)
    assert Prices(input=2, output=1, cache_write=2.5).usd(written) == pytest.approx(2.2)

    tier = PriceTier(above=200_000, input=2.0, output=20.0, cached=0.5)
    prices = Prices(input=1.0, output=10.0, tiers=(tier,))

    assert prices.usd(Usage(200_000, 100_000)) == pytest.approx(1.2)
    assert prices.usd(Usage(300_000, 100_000, 0, 100_000)) == pytest.approx(0.4 + 0.05 + 2.0)


def test_a_price_of_ones_own_wins(tmp_path: Path) -> None:
    file = tmp_path / "pool.toml"
    worker = '[[pool.workers]]\nprovider = "openai"\nmodel = "gpt-5-mini"\n'
    file.write_text(f'[pool]\n{worker}name = "a"\nprices = {{ input = 1, output = 2 }}\n{worker}name = "b"\n')

    own, listed = Pool.load(str(file))

    assert own.prices == Prices(input=1.0, output=2.0)
    assert listed.prices == list_prices("openai", "gpt-5-mini")


@pytest.mark.parametrize("name", ["paper", "paper-unconstrained"])
def test_shipped_pools_hold_no_copies_and_have_prices(name: str) -> None:
    assert all(entry.prices is not None and entry.prices.source.startswith("genai-prices") for entry in Pool.load(name))


def test_the_command_shows_prices_and_says_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pools", "prices", "openai:gpt-5-mini", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    expected = list_prices("openai", "gpt-5-mini")
    assert expected is not None
    assert shown["prices"] == expected.model_dump(mode="json")

    assert main(["pools", "prices", "openai:no-such-model"]) == 2
    assert "no-such-model" in capsys.readouterr().err
