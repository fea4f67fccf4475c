"""The grammar that a Conductor's model is held to: its dialect, its place in the request, and bounds that fit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl import Conductor, Pool, RunFailed, UsageError, WorkerEntry
from wfdsl.conductor.named import local_entry
from wfdsl.conductor.settings import Grammar
from wfdsl.language.constrained import gbnf, llguidance_lark, max_tokens_for
from wfdsl.testing import ScriptedWorker

from .scripted_server import EMPTY, lists

if TYPE_CHECKING:
    from pathlib import Path

    from .scripted_server import Chat

SERVER = "http://127.0.0.1:1/v1"
SMALL: dict[str, Any] = {"grammar": "on", "max_prose": 10, "max_subtask": 10}


def grammar_of(model: Any, **options: Any) -> Grammar:
    """The grammar that a Conductor is held to."""
    found = Conductor(model, **{"grammar": "on", **options}).settings.grammar
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("entry", "opening"),
    [
        (WorkerEntry(name="m", provider="local"), "root ::="),
        (WorkerEntry(name="m", provider="openai", base_url=SERVER), "root ::="),
        (WorkerEntry(name="m", provider="openai", base_url=SERVER, grammar_dialect="llguidance"), "start:"),
        (WorkerEntry(name="m", provider="transformers", model="folder"), "start:"),
    ],
)
def test_a_provider_is_given_the_dialect_that_it_takes(entry: WorkerEntry, opening: str) -> None:
    for grammar in (grammar_of(entry, **SMALL), grammar_of(ScriptedWorker([]), entry=entry, **SMALL)):
        assert opening in grammar.call_settings([0, 2], 2, recursion=False)["grammar"]


@pytest.mark.parametrize("provider", ["anthropic", "google", "openai"])
def test_a_provider_that_would_ignore_a_grammar_is_refused(provider: str) -> None:
    with pytest.raises(UsageError, match=f"{provider} takes no grammar"):
        Conductor(WorkerEntry(name="m", provider=provider), grammar="on")


@pytest.mark.parametrize(
    ("settings", "field", "write"),
    [
        ({}, "grammar", gbnf),
        (
            {"grammar_field": "structured_outputs", "grammar_dialect": "llguidance"},
            "structured_outputs",
            llguidance_lark,
        ),
    ],
)
async def test_each_round_sends_its_grammar_and_the_tokens_that_cut_no_completion(
    chat: Chat, settings: dict[str, Any], field: str, write: Any
) -> None:
    conductor = Conductor(chat.entry("conductor", **settings), **SMALL, max_steps=2)
    chat.script = [lists([0], [[]]), EMPTY]

    await conductor.solve("Why?", chat.pool())

    bounds: dict[str, Any] = {"max_prose": 10, "max_subtask": 10}
    for body, recursion in zip(chat.bodies, (False, True), strict=True):
        grammar = write((0, 1, 2), 2, recursion=recursion, **bounds)
        assert body[field] == ({"grammar": grammar} if field == "structured_outputs" else grammar)
        assert body["max_tokens"] == max_tokens_for((0, 1, 2), 2, **bounds)


@pytest.mark.parametrize("max_steps", [1, 2, 3, 5, 8])
def test_bounds_that_are_left_open_leave_half_of_a_known_context_to_the_prompt(max_steps: int) -> None:
    grammar = grammar_of(local_entry(), max_steps=max_steps)

    chars = grammar.max_subtask
    assert grammar.max_prose == chars
    assert grammar.tokens((0, 1, 2), max_steps) <= 2048
    assert chars == 200 or Grammar(max_prose=chars + 1, max_subtask=chars + 1).tokens((999,), max_steps) > 2048


def test_bounds_that_are_given_stay_and_others_fit_the_context_as_far_as_it_is_known(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 1024}))
    server = WorkerEntry(name="m", provider="openai", base_url=SERVER)
    one, unknown = grammar_of(local_entry(), max_prose=0), grammar_of(server)
    told = grammar_of(server.model_copy(update={"options": {"context": 1024}}))
    folder = grammar_of(WorkerEntry(name="m", provider="transformers", model=str(tmp_path)))

    assert (one.max_prose, one.max_subtask) == (0, 94)
    assert (unknown.max_prose, unknown.max_subtask) == (200, 200)
    assert told.tokens((999,), 5) <= 512
    assert folder.tokens((999,), 5) <= 512


@pytest.mark.parametrize("context", [0, -1, "8192", True, 1.5])
def test_a_context_that_is_not_a_number_of_tokens_is_refused(context: Any) -> None:
    entry = WorkerEntry(name="m", provider="openai", base_url=SERVER, options={"context": context})

    with pytest.raises(UsageError, match="options: context: must be "):
        Conductor(entry, grammar="on")


@pytest.mark.parametrize(
    ("entry", "bounds", "message"),
    [
        (
            local_entry(),
            {"max_prose": 200, "max_subtask": 200},
            "may take 4956 tokens, and the context of the Conductor's model is 4096: lower max_steps, max_subtask",
        ),
        (local_entry().model_copy(update={"options": {"context": 256}}), {"max_subtask": 20}, "is 256"),
        (
            WorkerEntry(name="m", provider="openai", base_url=SERVER, options={"context": 1024}),
            {"max_subtask": 200},
            "the context of the Conductor's model is 1024",
        ),
        (local_entry(), {"max_steps": 33}, r"max_steps must be from 1 to 32 \(got 33\)"),
    ],
)
def test_a_grammar_that_the_context_cannot_hold_is_refused(
    entry: WorkerEntry, bounds: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Conductor(entry, grammar="on", **bounds)


@pytest.mark.parametrize(("grammar", "hint"), [("on", "--deep"), ("off", "a grammar")])
async def test_a_server_that_ignores_the_grammar_is_what_the_hint_is_about(grammar: Any, hint: str) -> None:
    conductor = Conductor(ScriptedWorker(["no lists"]), grammar=grammar, reasks=0)
    pool = Pool.from_workers([(WorkerEntry(name="w", provider="function"), ScriptedWorker(["x"]))])

    with pytest.raises(RunFailed) as caught:
        await conductor.solve("Why?", pool)

    assert hint in str(caught.value)


async def test_a_node_of_a_pool_file_may_be_held_to_a_grammar(chat: Chat) -> None:
    pool = chat.pool(1, node={"max_rounds": 0, "grammar": "on", "max_prose": 0, "max_subtask": 12, "max_steps": 2})
    await chat.solve(lists([1], [[]]), lists([0], [[]]), max_rounds=0, pool=pool)

    assert "grammar" not in chat.bodies[0]
    assert chat.bodies[1]["grammar"] == gbnf((0,), 2, max_prose=0, max_subtask=12)
