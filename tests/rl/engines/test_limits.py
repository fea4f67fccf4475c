"""Limits for many processes: commands that draw their calls from a reward server, and the limits of its keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import ServerProcess
from wfdsl.cli.main import main
from wfdsl.server.api_keys import make_key
from wfdsl.server_client import ServerRefused
from wfdsl_rl.cli.train import main as train

from .conftest import BOUND_USD, CALL_USD, FLOW, Provider, RewardProcess, Serve, completion, get, post

pytestmark = pytest.mark.slow


def test_every_command_draws_its_calls_from_the_server(
    serve: Serve, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    (tmp_path / "flow.wf").write_text(FLOW)
    questions = [{"id": number, "question": f"Why {number}?"} for number in range(2)]
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "node"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    drawn = ["--pool", "pool.toml", "--quiet", "--limit-server", server.url]
    commands = [
        (["run", "flow.wf", "Why?", "--budget-calls", "1"], 4, 1),
        (["resume", "last", "--budget-calls", "2"], 0, 1),
        (["run", "--from", "last", "--step", "solve", "--budget-calls", "5"], 0, 1),
        (["solve", "How?", "--conductor", "flow.wf"], 0, 2),
        (["solve", "--from", "asked.jsonl", "--out", "answers.jsonl", "--conductor", "flow.wf"], 0, 4),
        (["solve", "Who?", "--reasks", "0"], 3, 1),  # the Conductor's own call, whose reply is not a workflow
    ]
    calls = 0
    for command, code, more in commands:
        assert main([*command, *drawn]) == code, command
        calls += more
        assert settled(server) == calls, command

    serving = ServerProcess(tmp_path, "--workflow", "flow.wf", *drawn)
    serving.client.chat.completions.create(model="flow", messages=[{"role": "user", "content": "What?"}])
    assert serving.stop() == 0

    assert settled(server) == calls + 2 == len(provider.asked)
    assert get(f"{server.url}/v1/limits").json()["budget"]["spent"]["calls"] == calls + 2


def test_a_step_that_a_conductor_wrote_is_asked_again_with_a_lease(
    serve: Serve, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, answer = serve(), provider.answer

    def write_or_answer(body: dict[str, Any]) -> str:
        said = answer(body)
        return completion("Plan it.", "Solve it.") if "model_id" in json.dumps(body["messages"]) else said

    monkeypatch.setattr(provider, "answer", write_or_answer)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "node"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    drawn = ["--pool", "pool.toml", "--max-rounds", "0", "--quiet", "--limit-server", server.url]
    assert main(["solve", "Who?", *drawn]) == 0
    before = settled(server)

    assert main(["solve", "--from", "last", "--round", "0", "--step", "1", *drawn]) == 0

    assert before == 3  # the Conductor's call, and two steps
    assert settled(server) == len(provider.asked) == 4
    assert provider.asked[-1] == provider.asked[-2]
    assert get(f"{server.url}/v1/limits").json()["budget"]["spent"]["calls"] == 4


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_dry_run_does_not_print_the_key_in_the_url_of_a_limit_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    url = "http://any:wfdsl-SECRET@node1:8700/a@b"

    assert train(["smollm2-135m", "--limit-server", url, "--dry-run", *as_json]) == 0

    shown = capsys.readouterr().out
    assert "wfdsl-train smollm2-135m --limit-server http://node1:8700/a@b" in shown
    assert "SECRET" not in shown


def settled(server: RewardProcess) -> int:
    """The calls that other processes have drawn from the server."""
    found: dict[str, int] = get(f"{server.url}/v1/leases").json()["ended"]
    assert found.keys() <= {"settled"}
    return found.get("settled", 0)


def test_a_key_spends_its_budget_on_completions_and_leases_and_sends_its_requests_in_any_minute(
    serve: Serve, provider: Provider, tmp_path: Path
) -> None:
    limit_usd = BOUND_USD + 2 * CALL_USD
    limits: dict[str, Any] = {
        "ann": {"usd": limit_usd},
        "bob": {},
        "cid": {"requests_per_minute": 2},
        "dan": {"without": ("bob",)},
    }
    keys = {name: make_key(str(tmp_path / "keys.toml"), name, each) for name, each in limits.items()}
    bearer = {name: {"authorization": f"Bearer {key}"} for name, key in keys.items()}
    server = serve("--keys", "keys.toml")
    samples = [{"task": "t0", "completion": completion(f"Do {number}.")} for number in range(20)]
    with pytest.raises(ServerRefused, match=r"the budget of \$0\.128 has") as spent:
        server.client(key=keys["ann"]).score_sync(samples)
    paid = len(provider.asked)
    lease = {"holder": "node", "worker": "ann", "calls": [[100, BOUND_USD]]}

    refused = post(f"{server.url}/v1/leases", json=lease, headers=bearer["ann"])
    given = post(f"{server.url}/v1/leases", json={**lease, "holder": "other"}, headers=bearer["bob"])
    slime = {"response": "no lists", "label": "t0"}
    answers = [post(f"{server.url}/slime", json=slime, headers=bearer["cid"]) for _ in range(3)]
    without = post(f"{server.url}/slime", json=slime, headers=bearer["dan"])
    server.stop()
    again = serve("--keys", "keys.toml").client(key=keys["ann"])
    with pytest.raises(ServerRefused, match=r"the budget of \$0\.128 has"):
        again.score_sync([{"task": "t0", "completion": completion("Do this after the restart.")}])

    assert spent.value.code == "insufficient_quota"
    assert 0 < paid * CALL_USD <= limit_usd
    assert len(provider.asked) == paid
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")
    assert len(given.json()["leases"]) == 1
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert int(answers[2].headers["retry-after"]) > 0
    assert (without.status_code, without.json()["error"]["code"]) == (403, "worker_not_allowed")
