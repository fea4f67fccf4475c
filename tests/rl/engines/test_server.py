"""The reward server as its clients see it: each form of request, and what is refused."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.forked import ended
from wfdsl.errors import UsageError
from wfdsl_rl.engines.client import ServerRefused

from .conftest import CALL_USD, Provider, RewardProcess, Serve, completion, eventually, get, post, verdict, write_files

pytestmark = pytest.mark.slow
ONE = completion("Solve it now.")


@pytest.fixture(scope="module")
def provider_of_all() -> Iterator[Provider]:
    found = Provider()
    yield found
    found.close()


@pytest.fixture(scope="module")
def server(provider_of_all: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardProcess]:
    """A server of several tests; each counts the requests that its own completions cause."""
    folder = tmp_path_factory.mktemp("shared")
    write_files(folder, provider_of_all.url)
    found = RewardProcess(folder, "--port", "0")
    yield found
    found.stop()


@pytest.fixture
def calls(provider_of_all: Provider) -> Callable[[], int]:
    """How many calls the provider of `server` has got since the test began."""
    before = len(provider_of_all.asked)
    return lambda: len(provider_of_all.asked) - before


def test_a_completion_is_answered_with_its_result(server: RewardProcess, calls: Callable[[], int]) -> None:
    url = server.url
    assert verdict("Solve it now.") == "yes"
    ours = post(f"{url}/v1/score", json={"task": "t0", "completion": ONE, "sample_id": "s1"}).json()

    assert ours.pop("seconds") >= 0
    assert ours == {
        "sample_id": "s1",
        "task": "t0",
        "score": 1.0,
        "outcome": "right",
        "steps": 1,
        "cost_usd": pytest.approx(CALL_USD),
        "tokens": {"prompt_tokens": 10, "completion_tokens": 2},
        "workers": {"ann": 1},
        "problems": [],
        "replayed": 0,
        "final": ["Solve it now.", "yes"],
    }
    assert calls() == 1


def test_a_sample_is_paid_once_however_often_and_by_however_many_ranks_at_once_it_is_sent(
    serve: Serve, provider: Provider
) -> None:
    server = serve()
    texts = [completion(f"Solve {number}.", "Check.") for number in range(8)]
    samples = [{"task": "t0", "completion": text, "sample_id": f"s{number}"} for number, text in enumerate(texts)]

    provider.going.clear()
    with ThreadPoolExecutor(8) as ranks:
        scored = ranks.map(lambda client: client.score_sync(samples), [server.client() for _ in range(8)])
        eventually(lambda: "wfdsl_requests_in_progress 8" in get(f"{server.url}/metrics").text)
        provider.going.set()
        found = list(scored)
    port = server.port
    server.stop()
    restarted = serve(port=port).client()
    again = restarted.score_sync(samples)
    with pytest.raises(ServerRefused, match="an id of its own"):
        restarted.score_sync([{**samples[0], "completion": "another"}])

    assert all(each == found[0] for each in found)
    assert len(provider.asked) == 16
    assert [{**each, "seconds": 0, "replayed": 0} for each in again] == [{**each, "seconds": 0} for each in found[0]]
    assert [each["replayed"] for each in again] == [2] * 8


def test_equal_completions_of_a_request_are_samples_of_their_own_and_known_again(
    server: RewardProcess, calls: Callable[[], int]
) -> None:
    url = server.url
    batch = {"samples": [{"task": "t0", "completion": completion("Solve it twice.")}] * 2}

    first, again = (post(f"{url}/v1/score", json=batch).json() for _ in range(2))
    other = post(f"{url}/v1/score?run=second", json=batch).json()

    assert first == again
    assert len({each["sample_id"] for each in [*first["results"], *other["results"]]}) == 4
    assert calls() == 4


async def test_a_refused_call_leaves_those_at_the_same_time(server: RewardProcess, calls: Callable[[], int]) -> None:
    client = server.client()
    samples = [{"task": "t0", "completion": completion(f"Do {number}.")} for number in range(10)]

    *found, bad = await asyncio.gather(
        *(client.score([each]) for each in [*samples, {"task": "t9", "completion": ONE}]), return_exceptions=True
    )

    assert [each[0]["final"][0] for each in found if isinstance(each, list)] == [f"Do {at}." for at in range(10)]
    assert isinstance(bad, ServerRefused)
    assert bad.code == "unknown_task"
    assert calls() == 10


def test_a_request_that_cannot_be_sent_fails_at_once(server: RewardProcess, calls: Callable[[], int]) -> None:
    client = server.client(key="a\nb", patience_s=600.0)

    with pytest.raises(UsageError):
        client.score_sync([{"task": "t0", "completion": ONE}])
    assert calls() == 0


REFUSED: list[tuple[Any, int, str, str | None]] = [
    ("[", 400, "invalid_json", None),
    ([], 400, "invalid_json", None),
    ({"samples": 3}, 400, "invalid_value", "samples"),
    ({"task": "t0"}, 400, "invalid_value", "completion"),
    ({"task": "t9", "completion": ONE}, 404, "unknown_task", "task"),
    ({"task": "t0", "completion": ONE, "sample_id": ""}, 400, "invalid_value", "sample_id"),
    ({"task": "t0", "completion": ONE, "sample_id": "a\nb"}, 400, "invalid_value", "sample_id"),
    ({"task": "t0", "completion": ONE, "true": [9], "shown": [0]}, 400, "invalid_value", "true"),
    ({"task": "t0", "completion": ONE, "true": [0]}, 400, "invalid_value", "true"),
    ({"task": "t0", "completion": ONE, "true": [True], "shown": [0]}, 400, "invalid_value", "true[0]"),
    ({"task": "t0", "completion": ONE, "previous": ["a"]}, 400, "invalid_value", "previous"),
    ({"task": "t1", "completion": ONE, "sample_id": "used"}, 422, "sample_id_reused", "sample_id"),
    ({"task": ["t0"], "completion": ONE}, 400, "invalid_value", "task"),
    ({"samples": [{"task": "t0", "completion": ONE}, {"task": "t0"}]}, 400, "invalid_value", "samples[1].completion"),
    ({"samples": [{}] * 4097}, 400, "invalid_value", "samples"),
    ('{"task": "t0", "completion": "x", "true": NaN}', 400, "invalid_json", None),
]


def test_what_cannot_be_scored_is_refused_with_what_to_do(server: RewardProcess, calls: Callable[[], int]) -> None:
    server.client().score_sync([{"task": "t0", "completion": ONE, "sample_id": "used"}])
    for body, status, code, param in REFUSED:
        content = body if isinstance(body, str) else httpx2.Request("POST", "http://x", json=body).content
        answer = post(f"{server.url}/v1/score", content=content)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (status, code, param), body
    for run in ("%00", "a" * 201):
        answer = post(f"{server.url}/v1/score?run={run}", json={"task": "t0", "completion": "x"})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "run")
    assert get(f"{server.url}/v1/nothing").status_code == 404
    assert calls() == 1


def test_a_spent_budget_is_an_error_that_is_not_retried_and_no_call_is_made(serve: Serve, provider: Provider) -> None:
    server = serve("--budget-calls", "3", "--set", "conductor.max_steps=1")
    assert server.client().score_sync([{"task": "t0", "completion": completion("a", "b")}])[0]["outcome"] == "invalid"

    with pytest.raises(ServerRefused, match="the budget of 3 calls is spent") as caught:
        server.client().score_sync([{"task": "t0", "completion": completion(f"Do {n}.")} for n in range(5)])

    assert (caught.value.status, caught.value.code) == (429, "insufficient_quota")
    assert len(provider.asked) == 3


def made_key(folder: Path, *more: str) -> str:
    return ended(
        "-m", "wfdsl", "serve", "keys", "make", "ann", "--keys", "keys.toml", *more, folder=folder
    ).stdout.strip()


def test_keys_are_needed_for_other_addresses_and_may_be_in_the_url(serve: Serve, tmp_path: Path) -> None:
    key = made_key(tmp_path)
    with pytest.raises(AssertionError, match=r"--host 0\.0\.0\.0 needs --keys FILE"):
        serve("--host", "0.0.0.0")
    server = serve("--keys", "keys.toml")

    named = server.url.replace("http://", f"http://any:{key}@")
    assert post(f"{named}/v1/score", json={"completion": "no lists", "task": "t0"}).json()["score"] == 0.0
    assert server.client(key=key).score_sync([{"task": "t0", "completion": "no lists"}])[0]["outcome"] == "invalid"
    assert post(f"{server.url}/v1/score", json={"completion": "", "task": "t0"}).status_code == 401
    assert get(f"{server.url}/health").json() == {"status": "ok"}
    assert key not in "".join(server.lines)


def test_a_key_that_has_spent_its_budget_gets_what_it_has_paid_for_and_no_call(
    serve: Serve, provider: Provider, tmp_path: Path
) -> None:
    key = made_key(tmp_path, "--usd", str(2 * CALL_USD))
    pool = tmp_path / "pool.toml"
    pool.write_text(pool.read_text().replace("input = 1000.0, output = 2000.0", "input = 0.0, output = 7000.0"))
    pool.write_text(pool.read_text().replace("max_tokens = 20", "max_tokens = 2"))  # a call costs its bound

    def ask(server: RewardProcess, name: str) -> tuple[int, Any]:
        sample = {"task": "t0", "completion": completion(f"Do {name}."), "sample_id": name}
        reply = post(f"{server.url}/v1/score", json=sample, headers={"authorization": f"Bearer {key}"})
        return reply.status_code, reply.json().get("error", {}).get("code")

    server = serve("--keys", "keys.toml")
    replies = [ask(server, name) for name in ("k1", "k2", "k3", "k1")]
    server.stop()
    again = serve("--keys", "keys.toml")
    replies += [ask(again, name) for name in ("k2", "k4")]

    spent = (429, "insufficient_quota")
    assert replies == [(200, None), (200, None), spent, (200, None), (200, None), spent]
    assert len(provider.asked) == 2


def test_a_request_has_its_place_before_its_body_is_read(serve: Serve) -> None:
    server = serve("--set", "serve.max_requests=1")
    body = json.dumps({"task": "t0", "completion": "no lists"}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
        slow.sendall(b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
        eventually(lambda: "wfdsl_requests_in_progress 1.0" in get(f"{server.url}/metrics").text)
        refused = post(f"{server.url}/v1/score", content=body)
        slow.sendall(body)
        answered = slow.recv(1 << 16)

    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
    assert answered.startswith(b"HTTP/1.1 200")
    assert post(f"{server.url}/v1/score", content=body).status_code == 200


def test_a_server_that_is_told_to_end_answers_what_is_in_progress(serve: Serve, provider: Provider) -> None:
    server = serve("--set", "serve.drain_s=60")
    provider.going.clear()
    with ThreadPoolExecutor(1) as clients:
        asked = clients.submit(post, f"{server.url}/v1/score", json={"task": "t0", "completion": ONE})
        provider.wait_for(1)
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: any("SIGTERM: ends after the requests in progress" in line for line in server.lines))
        with pytest.raises(httpx2.TransportError):
            get(f"{server.url}/health")
        provider.going.set()
        answer = asked.result(60)

    assert (answer.status_code, answer.json()["score"]) == (200, 1.0)
    assert server.stop() == 0
    assert len(provider.asked) == 1


def test_a_run_that_has_begun_is_finished_before_the_server_ends_although_its_client_has_left(
    serve: Serve, provider: Provider
) -> None:
    server, sample = serve("--set", "serve.drain_s=60"), {"task": "t0", "completion": ONE, "sample_id": "s1"}
    provider.going.clear()
    with ThreadPoolExecutor(1) as clients:
        left = clients.submit(post, f"{server.url}/v1/score", json=sample, timeout=2.0)
        provider.wait_for(1)
        with pytest.raises(httpx2.ReadTimeout):
            left.result(60)
    eventually(lambda: "wfdsl_requests_in_progress 0.0" in get(f"{server.url}/metrics").text)
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(0.5)
    provider.going.set()
    assert server.stop() == 0

    again = post(f"{serve().url}/v1/score", json=sample).json()

    assert (again["score"], again["replayed"]) == (1.0, 1)
    assert len(provider.asked) == 1


def test_a_request_that_the_server_cannot_answer_before_it_ends_is_told_to_ask_again(
    serve: Serve, provider: Provider
) -> None:
    server = serve("--set", "serve.drain_s=1")
    provider.going.clear()
    with ThreadPoolExecutor(1) as clients:
        asked = clients.submit(post, f"{server.url}/v1/score", json={"task": "t0", "completion": ONE})
        provider.wait_for(1)
        code = server.stop()
        answer = asked.result(60)

    assert (answer.status_code, answer.json()["error"]["code"], code) == (503, "shutting_down", 0)
    assert answer.headers["retry-after"] == "5"
    assert "Traceback" not in "".join(server.lines)
    assert any(line.startswith("POST /v1/score 503 ") for line in server.lines)


def test_two_servers_cannot_use_one_journal(serve: Serve, tmp_path: Path) -> None:
    serve()

    with pytest.raises(AssertionError, match=r"another process answers with the journal journal\.db; stop it"):
        serve()

    (tmp_path / "link.db").symlink_to("journal.db")
    with pytest.raises(AssertionError, match=r"another process answers with the journal link\.db; stop it"):
        serve("--journal", "link.db")
