"""A process that is killed while a Conductor is at work: the next one continues, and asks nothing twice."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.interpreter.chat_server import ChatServer, Refused
from tests.interpreter.stopping import begun
from wfdsl import Conductor, Pool, WorkerEntry

from .scripted_server import lists

if TYPE_CHECKING:
    from pathlib import Path

PLAN, REVISION = lists([0, 1], [[], [0]]), lists([1, 0], ["all", [0]], word="mend")
COMPLETIONS = ["no", PLAN, REVISION]
CALLS = 7  # an invalid completion, a plan, its two steps, a revision, its two steps


def solve(url: str, journal: Path) -> str | None:
    def entry(name: str) -> WorkerEntry:
        return WorkerEntry(name=name, provider="openai", model=name, base_url=url, retries=0)

    pool = Pool([entry("w0"), entry("w1")])
    return Conductor(entry("conductor")).solve_sync("Why?", pool, journal=journal, run_id="one").answer


class Provider(ChatServer):
    """Answers a number of requests and leaves later ones waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = 0
        self.stuck, self.over = threading.Event(), threading.Event()

    def answer(self, body: dict[str, Any]) -> str:
        if len(self.asked) >= self.answers:
            self.stuck.set()
            self.over.wait(60)
            raise Refused
        self.asked.append(json.dumps(body, sort_keys=True))
        if body["model"] != "conductor":
            return f"{body['model']}: {body['messages'][-1]['content'].splitlines()[-1]}"
        return COMPLETIONS[sum('"model": "conductor"' in each for each in self.asked) - 1]


@pytest.mark.parametrize("answered", range(CALLS))
def test_a_conductor_that_was_killed_in_any_phase_continues_without_asking_again(tmp_path: Path, answered: int) -> None:
    with closing(Provider()) as server:
        server.answers = answered
        first = begun(solve, server.url, tmp_path / "journal.db")
        assert server.stuck.wait(60)
        first.kill()
        first.join()
        server.over.set()
        server.answers = CALLS

        assert solve(server.url, tmp_path / "journal.db") == "w0: mend 1"

    assert len(server.asked) == len(set(server.asked)) == CALLS
