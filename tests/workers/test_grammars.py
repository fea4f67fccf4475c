"""A grammar that a call brings: under which name each server is sent it, and who refuses it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.workers.wire import as_json, ask, call, entry_for, good_body, reply, serving

from wfdsl import UsageError, WorkerEntry
from wfdsl.protocols import WorkerFailure
from wfdsl.workers.call_settings import dialect_of

GRAMMAR = 'root ::= "yes" | "no"\n'
WITH_GRAMMAR = call(settings={"grammar": GRAMMAR})


@pytest.mark.parametrize(
    ("settings", "body"),
    [
        ({}, {"grammar": GRAMMAR}),
        ({"grammar_field": "grammar"}, {"grammar": GRAMMAR}),
        ({"grammar_field": "structured_outputs"}, {"structured_outputs": {"grammar": GRAMMAR}}),
        ({"grammar_field": "guided_grammar"}, {"guided_grammar": GRAMMAR}),
        ({"grammar_field": "ebnf"}, {"ebnf": GRAMMAR}),
        (
            {"grammar_field": "structured_outputs", "extra_body": {"structured_outputs": {"whitespace_pattern": " "}}},
            {"structured_outputs": {"whitespace_pattern": " ", "grammar": GRAMMAR}},
        ),
        ({"extra_body": {"repeat_penalty": 1.2}}, {"repeat_penalty": 1.2, "grammar": GRAMMAR}),
    ],
)
async def test_a_server_is_sent_the_grammar_under_the_name_that_it_knows(
    settings: dict[str, Any], body: dict[str, Any]
) -> None:
    async with serving(as_json(good_body("chat"))) as wire:
        await ask(entry_for("chat", wire.url, **settings), WITH_GRAMMAR)

    (request,) = wire.requests
    usual = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}], "max_tokens": 4096}
    assert request.body == {**usual, **body}


@pytest.mark.parametrize("kind", ["anthropic", "responses"])
async def test_an_api_that_takes_no_grammar_refuses_it_before_anything_is_sent(kind: str) -> None:
    async with serving(as_json(good_body(kind))) as wire:
        with pytest.raises(UsageError, match=r'worker "w": .* takes no grammar; leave the grammar out'):
            await ask(entry_for(kind, wire.url), WITH_GRAMMAR)

    assert wire.requests == []


@pytest.mark.parametrize("provider", ["openai", "google"])
async def test_a_provider_s_own_server_takes_no_grammar(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("GEMINI_API_KEY", "none")

    with pytest.raises(UsageError, match=f"{provider} takes no grammar"):
        await ask(WorkerEntry(name="w", provider=provider, model="m"), WITH_GRAMMAR)


@pytest.mark.parametrize(
    ("entry", "dialect"),
    [
        (WorkerEntry(name="w", provider="local"), "gbnf"),
        (WorkerEntry(name="w", provider="transformers"), "llguidance"),
        (WorkerEntry(name="w", provider="openai", base_url="http://h/v1"), "gbnf"),
        (WorkerEntry(name="w", provider="openai", base_url="http://h/v1", grammar_dialect="llguidance"), "llguidance"),
    ],
)
def test_the_dialect_is_the_provider_s_unless_the_entry_says_otherwise(entry: WorkerEntry, dialect: str) -> None:
    assert dialect_of(entry) == dialect


@pytest.mark.parametrize(
    ("status", "said", "hint"),
    [
        (500, "Internal server error", True),  # vLLM's xgrammar to llguidance's dialect
        (400, "Grammar error: unknown name", True),
        (400, "the context is 1024 tokens", False),
        (401, "no such key", False),
    ],
)
async def test_a_failure_that_may_be_the_grammar_s_names_its_settings(status: int, said: str, hint: bool) -> None:
    body = json.dumps({"error": {"message": said}}).encode()
    async with serving(reply(body, status=status)) as wire:
        entry = entry_for("chat", wire.url)
        with pytest.raises(WorkerFailure) as with_grammar:
            await ask(entry, WITH_GRAMMAR)
        with pytest.raises(WorkerFailure) as without:
            await ask(entry)

    assert ("check grammar_field and grammar_dialect" in str(with_grammar.value)) == hint
    assert "grammar_field" not in str(without.value)
    assert (with_grammar.value.status, with_grammar.value.retryable) == (status, without.value.retryable)
