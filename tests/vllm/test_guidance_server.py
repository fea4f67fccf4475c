"""A Conductor's model on vLLM with llguidance as its backend, and with a short context."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vllm.test_default_server import QUESTION, ask, completions, pool_file
from wfdsl import analyze
from wfdsl.conductor.settings import Grammar
from wfdsl.protocols import WorkerFailure

GRAMMAR = Grammar(max_prose=8, max_subtask=8, dialect="llguidance")


@pytest.fixture
def boss(guidance: str, tmp_path: Path) -> Path:
    return pool_file(tmp_path, guidance, 'grammar_dialect = "llguidance"')


async def test_all_of_200_completions_of_random_weights_are_valid_under_the_grammar(boss: Path) -> None:
    replies = await completions(boss, 200, GRAMMAR)

    valid = [analyze(r.text, pool=workers, max_steps=steps, profile="strict").ok for r, workers, steps in replies]
    assert sum(valid) == 200
    assert {reply.finish for reply, *_ in replies} == {"stop"}


async def test_the_other_dialect_fails_once_and_names_the_setting(boss: Path) -> None:
    with pytest.raises(WorkerFailure, match="grammar_dialect") as raised:
        await ask(boss, grammar=Grammar(dialect="gbnf").call_settings(range(2), 1, recursion=False)["grammar"])

    assert not raised.value.retryable


async def test_without_a_known_context_the_server_refuses_and_the_failure_names_the_cure(boss: Path) -> None:
    settings = Grammar(dialect="llguidance").call_settings(range(7), 5, recursion=False)

    with pytest.raises(WorkerFailure, match=r"options = \{ context = TOKENS \}") as raised:
        await ask(boss, QUESTION, **settings)

    assert not raised.value.retryable
