"""A process that is killed while a Conductor is at work: the next one continues, and asks nothing twice."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.interpreter.stopping import begun
from wfdsl import Conductor, Pool, WorkerEntry

from .scripted_server import lists

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAN, REVISION = lists([0, 1], [[], [0]]), lists([1, 0], ["all", [0]], word="mend")
COMPLETIONS = ["no", PLAN, REVISION]
CALLS = 7  # an invalid completion, a plan, its two steps, a revision, its two steps


def solve(url: str, journal: Path) -> str | None:
    def entry(name: str) -> WorkerEntry:
        return WorkerEntry(name=name, provider="openai", model=name, base_url=url, retries=0)

    pool = Pool([entry("w0"), entry("w1")])
    return Conductor(entry("conductor")).solve_sync("Why?", pool, journal=journal, run_id="one").answer


class Server:
    """Answers a number of requests and leaves later ones waiting; knows what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = 0
        self.stuck = threading.Event()
        self.over = threading.Event()
        self.url = ""

    def reply_to(self, body: dict[str, Any]) -> str | None:
        if len(self.asked) >= self.answers:
            self.stuck.set()
            self.over.wait(60)
            return None
        self.asked.append(json.dumps(body, sort_keys=True))
        if body["model"] != "conductor":
            return f"{body['model']}: {body['messages'][-1]['content'].splitlines()[-1]}"
        return COMPLETIONS[sum('"model": "conductor"' in each for each in self.asked) - 1]


@contextmanager
def serving() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = state.reply_to(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            if text is None:
                return
            message = {"role": "assistant", "content": text}
            body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield state
    finally:
        state.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("answered", range(CALLS))
def test_a_conductor_that_was_killed_in_any_phase_continues_without_asking_again(tmp_path: Path, answered: int) -> None:
    with serving() as server:
        server.answers = answered
        first = begun(solve, server.url, tmp_path / "journal.db")
        assert server.stuck.wait(60)
        first.kill()
        first.join()
        server.over.set()
        server.answers = CALLS

        assert solve(server.url, tmp_path / "journal.db") == "w0: mend 1"

    assert len(server.asked) == len(set(server.asked)) == CALLS
