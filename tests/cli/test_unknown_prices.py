"""A price that is not known is no price of 0: `wfdsl runs show` and `wfdsl runs` give known ones only."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.interpreter.chat_server import ChatServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Command

    Ask = Callable[..., None]

WORKER = """
[[pool.workers]]
name = "{name}"
provider = "openai"
model = "m"
base_url = "{url}"
max_tokens = 10
{prices}
"""
NONE, FREE, PRICED = "", "prices = { input = 0, output = 0 }", "prices = { input = 1000, output = 1000 }"


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer() as chat:
        yield chat


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.wf").write_text('step a by w: "Say it."\nstep b by v sees a: "Say it again."\n')
    return tmp_path


@pytest.fixture
def ask(wfdsl: Command, place: Path, server: ChatServer) -> Ask:
    """Runs two steps on two workers with these prices."""

    def run(prices: str, others: str | None = None) -> None:
        both = (("w", prices), ("v", prices if others is None else others))
        workers = [WORKER.format(name=name, url=server.url, prices=line) for name, line in both]
        (place / "pool.toml").write_text("\n".join(['[pool]\nname = "toy"', *workers]))
        assert wfdsl("run", "two.wf", "Q", "--pool", "pool.toml").code == 0

    return run


def forget_replies(place: Path) -> None:
    """Leave the journal as a process does that is killed before the first reply."""
    with sqlite3.connect(place / "journal.db") as journal:
        journal.execute("UPDATE runs SET status = 'running', owner = 'gone', record = NULL")
        journal.execute("UPDATE calls SET status = 'started', finished = NULL, reply = NULL")
        journal.execute("DELETE FROM calls WHERE path = '[1]'")
    journal.close()


def usd(wfdsl: Command) -> list[float | None]:
    return [json.loads(line)["usd"] for line in wfdsl("runs", "--json").out.splitlines()]


@pytest.mark.parametrize(
    ("prices", "others", "said", "dollars"),
    [(NONE, None, "price not known", None), (FREE, None, "$0.00", 0.0), (PRICED, NONE, "price not known", None)],
)
def test_only_known_prices_are_a_sum(
    wfdsl: Command, ask: Ask, prices: str, others: str | None, said: str, dollars: float | None
) -> None:
    ask(PRICED)
    ask(prices, others)

    assert wfdsl("runs", "show", "last").out.partition("- paid: ")[2].splitlines()[0] == said
    last, priced = usd(wfdsl)  # each run has dollars of its own
    assert (last, (priced or 0) > 0) == (dollars, True)


@pytest.mark.parametrize("prices", [NONE, PRICED])
def test_before_the_first_reply_only_a_known_price_has_a_bound(
    wfdsl: Command, place: Path, ask: Ask, prices: str
) -> None:
    ask(prices)
    forget_replies(place)

    assert (usd(wfdsl)[0] is not None) == (prices == PRICED)
