"""Models by their names instead of a pool file: the path of somebody with one key, against a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wfdsl import Pool, UsageError
from wfdsl.cli.main import main
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import conductor_name, named_conductor
from wfdsl.workers.list_prices import list_prices

from .scripted_server import EMPTY, lists

if TYPE_CHECKING:
    from .scripted_server import Chat


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat: Chat) -> Chat:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_BASE_URL", chat.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    monkeypatch.chdir(tmp_path)
    return chat


def test_two_models_are_a_pool_and_the_first_one_conducts(server: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    server.script = [lists([0, 1], [[], [0]]), "So it is 1912.", EMPTY]

    code = main(["solve", "-q", "Why?", "--pool", "openai:conductor,openai:other"])

    out, err = capsys.readouterr()
    assert (code, out) == (0, "other: task 1\n")
    assert "note: conductor, the first worker of the pool, writes the workflow; --conductor names another" in err
    assert server.workers == ["other"]
    assert len(server.asked) == 3, "it writes the workflow, does step 0, and looks at the answer"
    assert server.keys == {"Bearer sk-of-a-test"}


def test_a_worker_of_the_pool_conducts_if_it_is_named(server: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    own = 'system_prompt = "You are a poet."\nmax_tokens = 9'
    Path("pool.toml").write_text(server.pool_file("w", "conductor", more=own))
    server.script = [lists([0], [[]]), EMPTY]

    code = main(["solve", "-q", "Why?", "--pool", "pool.toml", "--conductor", "conductor"])

    assert (code, capsys.readouterr().out) == (0, "w: task 0\n")
    assert "You are a poet." not in str(server.asked)
    assert server.bodies[0]["max_tokens"] == 1024
    assert server.called[0][1][0] == {"role": "system", "content": "You are a poet."}


def test_a_server_can_be_named_with_a_model_and_gets_no_key(server: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    write("one.wf")

    assert main(["run", "one.wf", "-q", "Why?", "--pool", f"openai:some/model:7b@{server.url}"]) == 0
    assert server.workers == ["some/model:7b"]
    assert server.keys == {""}


def write(name: str) -> None:
    Path(name).write_text('step answer by 0: "Answer."\n')


def test_a_missing_key_is_named_before_anything_is_asked(
    server: Chat, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")

    code = main(["solve", "-q", "Why?", "--pool", "openai:gpt-5,openai:gpt-5-mini"])

    assert code == 2
    assert "needs a key: set the environment variable OPENAI_API_KEY" in capsys.readouterr().err
    assert server.asked == []


@pytest.mark.parametrize(
    ("priced", "said"),
    [("ab", "at least $0.0060, price of conductor not known"), ("a", "at least $0.0030, price of b not")],
)
def test_of_the_cost_only_the_part_without_a_price_is_not_known(
    server: Chat, capsys: pytest.CaptureFixture[str], priced: str, said: str
) -> None:
    prices = "prices = { input = 100, output = 1000 }"
    Path("pool.toml").write_text("".join(server.pool_file(name, more=prices * (name in priced)) for name in "ab"))
    server.script = [lists([0, 1], [[], [0]])]

    main(["solve", "-q", "Why?", "--pool", "pool.toml", "--conductor", "openai:conductor", "--max-rounds", "0"])

    assert said in capsys.readouterr().err.splitlines()[-1]


def test_every_command_that_takes_a_pool_takes_models(server: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    write("one.wf")

    codes = [
        main(["check", "one.wf", "--pool", "openai:a,openai:b"]),
        main(["show", "one.wf", "--pool", "openai:a,openai:b"]),
        main(["pools", "show", "openai:a,openai:b"]),
        main(["pools", "check", "openai:a,openai:b"]),
        main(["run", "one.wf", "-q", "Why?", "--pool", "openai:a,openai:b"]),
        main(["run", "one.wf", "-q", "Why?", "--set", "pool.use=openai:a,openai:b"]),
        main(["solve", "--dry-run", "-q", "Why?", "--pool", "openai:a,openai:b"]),
    ]

    assert codes == [0] * len(codes)
    assert "Model 1" in capsys.readouterr().out


def test_names_prices_and_servers_of_listed_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    pool = Pool.load("openai:gpt-5, openai:@cf/mine@http://localhost:11434/v1,openai:gpt-5,anthropic:claude@20251001")

    assert pool.names == ("gpt-5", "@cf/mine", "gpt-5#2", "claude@20251001")
    assert pool.entry(1).base_url == "http://localhost:11434/v1"
    assert [entry.prices is None for entry in pool][:3] == [False, True, False]
    assert pool.entry(0).prices == list_prices("openai", "gpt-5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("opneai:gpt-5", 'there is no provider "opneai". Did you mean openai?'),
        ("openai:a,b", "'b' does not name a model: write PROVIDER:MODEL"),
        ("openai:", "does not name a model"),
        ("conductor:x", "does not name a model"),
        ("openai:x@https://user:pass@host/v1", "a password does not belong in a URL"),
        ("nothing", 'there is no pool "nothing"'),
    ],
)
def test_what_names_no_model_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Pool.load(text)


def test_the_rule_by_which_a_pool_gets_its_conductor() -> None:
    assert conductor_name(ConductorConfig(), None) == "local"
    assert conductor_name(ConductorConfig(), Pool.load("local")) == "local"
    assert conductor_name(ConductorConfig(), Pool.load("paper")) == "gemini-2.5-pro"
    assert conductor_name(ConductorConfig(model="gpt-5"), Pool.load("paper")) == "gpt-5"
    assert named_conductor(ConductorConfig(model="gpt-5"), Pool.load("paper")).entry.model == "gpt-5"
    assert named_conductor(ConductorConfig(model="openai:gpt-5")).entry.prices == list_prices("openai", "gpt-5")


def test_a_server_for_a_worker_of_the_pool_is_refused(server: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["solve", "-q", "Why?", "--pool", "openai:a", "--base-url", server.url])

    assert code == 2
    assert "as in --pool openai:MODEL@URL or in a pool file" in capsys.readouterr().err


@pytest.mark.local
def test_without_a_pool_the_command_says_what_answers(server: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["solve", "-q", "Why?", "--dry-run"])

    assert code == 0
    assert "a very small model on this machine (135 million parameters)" in capsys.readouterr().err


def test_a_dry_run_says_how_many_calls_there_may_be_and_what_they_may_cost(
    server: Chat, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")

    main(["solve", "-q", "Why?", "--pool", "openai:gpt-5", "--dry-run"])
    known = capsys.readouterr().out
    main(["solve", "-q", "Why?", "--pool", "openai:gpt-5,openai:mine", "--dry-run", "--json"])
    unknown = json.loads(capsys.readouterr().out)

    assert "[user]\n# How a workflow works" in known
    assert "calls at most: 16 (2 rounds of 5 steps, and 3 completions in each)" in known
    assert "cost at most: $" in known
    assert (unknown["calls"], unknown["usd"], unknown["price_not_known"]) == (16, None, ["mine"])
    assert server.asked == []
