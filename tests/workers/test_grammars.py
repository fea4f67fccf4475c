"""A grammar that a call brings: under which name each server is sent it, and who refuses it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.workers.wire import as_json, ask, call, entry_for, good_body, reply, sent, serving

from wfdsl import UsageError, WorkerEntry
from wfdsl.protocols import WorkerFailure

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
    request = await sent("chat", WITH_GRAMMAR, **settings)

    usual = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}], "max_tokens": 4096}
    assert request.body == {**usual, **body}


OWN_SERVERS = [WorkerEntry(name="w", provider=provider, model="m") for provider in ("openai", "google")]


@pytest.mark.parametrize("kind", ["anthropic", "responses", *OWN_SERVERS])
async def test_an_api_that_takes_no_grammar_refuses_it_before_anything_is_sent(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("GEMINI_API_KEY", "none")
    async with serving(as_json(good_body("chat"))) as wire:
        with pytest.raises(UsageError, match=r'worker "w": .* takes no grammar; leave the grammar out'):
            await ask(kind if isinstance(kind, WorkerEntry) else entry_for(kind, wire.url), WITH_GRAMMAR)

    assert wire.requests == []


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
