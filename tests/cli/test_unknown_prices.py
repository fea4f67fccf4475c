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
    chat = ChatServer()
    yield chat
    chat.close()


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


def paid(wfdsl: Command) -> str:
    """What `runs show` says was paid."""
    return wfdsl("runs", "show", "last").out.partition("- paid: ")[2].splitlines()[0]


def usd(wfdsl: Command) -> list[float | None]:
    return [json.loads(line)["usd"] for line in wfdsl("runs", "--json").out.splitlines()]


def test_a_price_that_is_not_known_is_no_dollars(wfdsl: Command, ask: Ask) -> None:
    ask(NONE)

    assert paid(wfdsl) == "price not known"
    assert usd(wfdsl) == [None]


def test_a_price_of_nothing_is_no_dollars_and_no_cents(wfdsl: Command, ask: Ask) -> None:
    ask(FREE)

    assert paid(wfdsl) == "$0.00"
    assert usd(wfdsl) == [0.0]


def test_a_price_that_is_known_of_one_worker_is_no_sum(wfdsl: Command, ask: Ask) -> None:
    ask(PRICED, NONE)

    assert paid(wfdsl) == "price not known"
    assert usd(wfdsl) == [None]


def test_before_the_first_reply_a_price_that_is_not_known_is_no_dollars(wfdsl: Command, place: Path, ask: Ask) -> None:
    ask(NONE)
    forget_replies(place)

    assert usd(wfdsl) == [None]


def test_before_the_first_reply_the_most_that_a_call_may_cost_is_known(wfdsl: Command, place: Path, ask: Ask) -> None:
    ask(PRICED)
    forget_replies(place)

    assert usd(wfdsl)[0] is not None


def test_each_run_has_dollars_of_its_own(wfdsl: Command, ask: Ask) -> None:
    for prices in (FREE, NONE, PRICED):
        ask(prices)

    priced, unknown, free = usd(wfdsl)

    assert (unknown, free) == (None, 0.0)
    assert priced is not None
    assert priced > 0
