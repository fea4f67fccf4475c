"""What differs from the paper is a setting, and `--protocol paper` is all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl import Conductor, Pool, WorkerEntry, analyze
from wfdsl.cli.main import main
from wfdsl.conductor.examples import example_from, load_examples, shipped_sets
from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.named import named_conductor
from wfdsl.conductor.prompt import Prompt
from wfdsl.experiment import PROTOCOLS, read_experiment
from wfdsl.language.constrained import gbnf, llguidance_lark

from .scripted_server import lists

if TYPE_CHECKING:
    from .scripted_server import Chat

LISTS, BINARY = lists([0, 1, 0], [[], [0], [0, 1]]), lists([0, 1, 0], [[], "all", "all"])


def test_under_the_binary_scheme_an_entry_is_nothing_or_all() -> None:
    checked = analyze(LISTS, access="binary")

    assert [found.code for found in checked.diagnostics] == ["access-not-binary", "access-not-binary"]
    assert checked.diagnostics[0].message == "step 1 sees a list of steps, and only none or all is allowed"
    assert analyze(BINARY, access="binary").ok
    assert analyze(LISTS).ok


def test_files_are_checked_by_it_too(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.wf"
    path.write_text('step a by 0: "A."\nstep b by 0: "B."\nstep c by 0 sees b: "C."\n')

    code = main(["check", str(path), "--access", "binary"])

    assert code == 1
    assert "access-not-binary" in capsys.readouterr().out


async def test_a_conductor_under_it_is_told_so_and_asked_again(chat: Chat) -> None:
    solution = await chat.solve(LISTS, BINARY, max_rounds=0, access="binary")

    assert solution.answer == "w0: task 2"
    assert 'and "all" shows every earlier step. Nothing else can be written.' in chat.asked[0][-1]["content"]
    assert "a list such as [0, 2]" not in chat.asked[0][-1]["content"]
    assert "[access-not-binary]" in chat.asked[1][-1]["content"]


@pytest.mark.parametrize("name", shipped_sets())
def test_examples_keep_to_it(name: str) -> None:
    listing = WorkerListing.of(Pool([WorkerEntry(name=f"w{at}", provider="openai", model="m") for at in range(7)]))
    base = Prompt.load("paper", examples=name)

    shown = base.shown_examples(listing.indices, 5, "binary")

    entries = [json.loads(line.partition("= ")[2]) for line in shown.splitlines() if line.startswith("access_list")]
    assert len(entries) == len(load_examples(name).examples)
    assert all(entry in ([], "all") for each in entries for entry in each)


def test_prose_stays_where_all_shows_the_same_steps() -> None:
    same, other = (example_from("Why?", f"Think.\n{text}") for text in (LISTS, lists([0, 1, 0], [[], [], [1]])))

    kept, dropped = (example.fitting((0, 1), 5, "binary") for example in (same, other))

    assert kept is not None
    assert dropped is not None
    assert kept.completion.startswith("Think.\n")
    assert dropped.completion.startswith("model_id")
    assert [step.access for step in dropped.workflow] == [(), (), "all"]


@pytest.mark.parametrize(("name", "write"), [("gbnf", gbnf), ("llguidance", llguidance_lark)])
def test_a_grammar_follows_the_access_scheme(name: Any, write: Any, chat: Chat) -> None:
    entry = chat.entry("conductor", grammar_field="structured_outputs", grammar_dialect=name)
    found = Conductor(entry, access="binary", grammar="on", max_prose=10, max_subtask=20).settings.grammar

    assert found is not None
    grammar = write([0, 1], access="binary", max_prose=10, max_subtask=20)
    assert found.call_settings([0, 1], 5, recursion=False)["grammar"] == grammar
    assert "after-" not in grammar


def test_the_small_model_conducts_under_the_protocol() -> None:
    experiment = read_experiment(None, [f"{key}={value}" for key, value in PROTOCOLS["paper"].items()])

    found = named_conductor(experiment.conductor, Pool.load("local")).settings.grammar

    assert found is not None
    assert found.access == "binary"


def test_the_protocol_is_one_flag_that_others_override(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path))
    pool = f"openai:conductor@{chat.url}"
    chat.script = [LISTS.replace("1, 0]", "0, 0]", 1), BINARY.replace("1, 0]", "0, 0]", 1), "first", "second", "third"]

    refused = main(["solve", "-q", "Why?", "--pool", pool, "--protocol", "paper"])
    asked = len(chat.asked)
    code = main(["solve", "-q", "Why?", "--pool", pool, "--protocol", "paper", "--set", "run.question_for=all"])

    assert (refused, asked, code, capsys.readouterr().out) == (3, 1, 0, "third\n")
    assert len(chat.asked) == 5, "no re-asks and no revision"
    assert "Why?" in chat.asked[-1][0]["content"]


def test_the_protocol_is_what_the_page_lists() -> None:
    found = read_experiment(None, [f"{key}={value}" for key, value in PROTOCOLS["paper"].items()])

    usual = read_experiment()
    assert found.conductor == replace(usual.conductor, access="binary", profile="strict", reasks=0, max_rounds=0)
    assert found.run == replace(usual.run, question_for="first")
