"""`wfdsl pools`: list, show, check, init."""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
from werkzeug import Request, Response

from wfdsl.cli.main import main
from wfdsl.protocols import Call, Reply
from wfdsl.workers import abilities
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_httpserver import HTTPServer

REPLY = {
    "model": "m",
    "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1},
}


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["pools", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def _at(file: Path, url: str, *workers: str) -> str:
    """A pool file of workers of one model at a server, each with these further lines."""
    base = f'provider = "openai"\nmodel = "m"\nbase_url = "{url}"\n'
    parts = (f'[[pool.workers]]\nname = "w{at}"\n{base}{more}\n' for at, more in enumerate(workers))
    file.write_text("".join(parts))
    return str(file)


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def pool_file(tmp_path: Path, httpserver: HTTPServer) -> str:
    """A pool of three: one answers, one is refused, one has no key."""
    httpserver.expect_request("/good/v1/chat/completions").respond_with_json(REPLY)
    refusal = {"error": {"message": "no such model"}}
    httpserver.expect_request("/bad/v1/chat/completions").respond_with_json(refusal, status=404)
    file = tmp_path / "pool.toml"
    file.write_text(
        f"""
[pool]
name = "mine"
description = "Three of a kind"
[pool.defaults]
provider = "openai"
model = "m"
[[pool.workers]]
name = "good"
description = "answers"
base_url = "{httpserver.url_for("/good/v1")}"
tags = ["x"]
temperature = 0.5
prices = {{ input = 1.5, output = 3, source = "list" }}
limits = {{ concurrency = 2 }}
[[pool.workers]]
name = "bad"
base_url = "{httpserver.url_for("/bad/v1")}"
fallback = "good"
[[pool.workers]]
name = "keyless"
api_key_env = "A_VARIABLE_THAT_IS_NOT_SET"
"""
    )
    return str(file)


def test_a_worker_of_another_package_that_raises_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(call: Call) -> Reply:
        raise KeyError("planted")

    pool = Pool.from_workers([(WorkerEntry(name="a", provider="function"), broken)])
    monkeypatch.setattr(Pool, "load", lambda name: pool)

    code, out, _ = _run(capsys, "check", "any", "--json")

    assert code == 3
    (checked,) = _lines(out)
    assert not checked["ok"]
    assert "KeyError: 'planted'" in checked["message"]


def test_a_pipe_as_a_pool_file_is_refused_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pipe = tmp_path / "pool.toml"
    os.mkfifo(pipe)
    writer = threading.Timer(20, lambda: os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)))  # ends a wait
    writer.start()

    code, _, err = _run(capsys, "show", str(pipe))

    waited = not writer.is_alive()
    writer.cancel()
    assert (code, waited) == (2, False)
    assert str(pipe) in err


def test_list_names_every_pool(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "list")

    assert (code, [line.split()[0] for line in out.splitlines()[:3]]) == (0, ["local", "paper", "paper-unconstrained"])


def test_show_tells_what_is_known_about_each_worker(pool_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "show", pool_file)
    shown = json.loads(_run(capsys, "show", pool_file, "--json")[1])

    assert code == 0
    assert (shown["name"], [worker["name"] for worker in shown["workers"]]) == ("mine", ["good", "bad", "keyless"])
    assert shown["workers"][0]["temperature"] == 0.5
    assert out.splitlines()[0] == "mine  Three of a kind"
    for part in (
        "0 good answers",
        "temperature 0.5",
        "limits concurrency 2",
        "prices $1.5 in, $3 out per million tokens (list)",
        "prices not known",
        "api_key_env A_VARIABLE_THAT_IS_NOT_SET",
        "fallback good",
    ):
        assert part in " ".join(out.split())


def test_check_asks_each_worker_and_fails_if_one_does(pool_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "check", pool_file, "--json")

    good, bad, keyless = _lines(out)
    assert code == 3
    assert (good["ok"], bad["ok"], keyless["ok"]) == (True, False, False)
    assert good["message"].startswith('"ok" in ')
    assert "HTTP 404: no such model; check model and base_url" in bad["message"]
    assert "set the environment variable A_VARIABLE_THAT_IS_NOT_SET" in keyless["message"]


def test_init_writes_a_pool_of_the_servers_models(
    httpserver: HTTPServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", "planted-key")
    told = [{"id": "llama3:8b", "max_model_len": 8192}, {"id": 'odd "name"', "max_model_len": "many"}]
    models = {"object": "list", "data": [*told, {"id": None}, "nonsense"]}
    bearer = {"Authorization": "Bearer planted-key"}
    httpserver.expect_request("/v1/models", headers=bearer).respond_with_json(models)
    file = tmp_path / "new.toml"
    url = httpserver.url_for("/v1")

    code, out, _ = _run(capsys, "init", "--base-url", url, "--api-key-env", "SERVER_KEY", "-o", str(file))

    pool = Pool.load(str(file))
    assert code == 0
    assert f"wfdsl pools check {file}" in out
    assert (pool.name, pool.names) == ("my-pool", ("llama3:8b", 'odd "name"'))
    assert {(entry.base_url, entry.api_key_env) for entry in pool} == {(url, "SERVER_KEY")}
    assert [entry.options for entry in pool] == [{"context": 8192}, {}]
    assert "planted-key" not in file.read_text()


def test_check_asks_as_a_run_does(httpserver: HTTPServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = {"error": {"message": "stream_options is not allowed"}}

    def answer(request: Request) -> Response:
        refused = "stream_options" in request.json
        return Response(json.dumps(refusal if refused else REPLY), 422 if refused else 200)

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    lines = ("", "stream_options = false", "stream = false")
    file = _at(tmp_path / "pool.toml", httpserver.url_for("/v1"), *lines)

    code, out, _ = _run(capsys, "check", file, "--json")

    assert code == 3
    assert [line["ok"] for line in _lines(out)] == [False, True, True]


def test_check_names_the_model_that_was_probably_meant(
    httpserver: HTTPServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = {"error": {"message": "no such model"}}
    httpserver.expect_request("/v1/chat/completions").respond_with_json(refusal, status=404)
    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": "m2"}, {"id": "llama"}]})

    code, out, _ = _run(capsys, "check", _at(tmp_path / "pool.toml", httpserver.url_for("/v1"), ""))

    assert code == 3
    assert '; the server has "m2"' in out


def test_check_says_how_long_it_waited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abilities, "LONGEST_WAIT_S", 0.3)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        file = _at(tmp_path / "pool.toml", f"http://127.0.0.1:{deaf.getsockname()[1]}/v1", "")
        code, out, _ = _run(capsys, "check", file)

    assert code == 3
    assert "no complete reply within 0.3 s" in out


def test_init_does_not_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text("precious")

    code, _, err = _run(capsys, "init", "--base-url", "http://h/v1", "--model", "m", "-o", str(tmp_path / "mine.toml"))

    assert code == 2
    assert "exists" in err
    assert (tmp_path / "mine.toml").read_text() == "precious"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Response("no", status=401), "HTTP 401"),
        (Response("<html>", status=200, content_type="text/html"), "not a JSON object"),
        (Response('{"data": []}', content_type="application/json"), "lists no models; name one with --model"),
    ],
)
def test_init_says_why_a_server_gave_no_list(
    answer: Response, message: str, httpserver: HTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    httpserver.expect_request("/v1/models").respond_with_response(answer)

    code, out, err = _run(capsys, "init", "--base-url", httpserver.url_for("/v1"))

    assert (code, out) == (2, "")
    assert message in err
    assert "--model" in err
