"""A Conductor's model on vLLM with llguidance as its backend, and with a short context."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vllm.server import SHORT
from tests.vllm.test_default_server import QUESTION, ask, completions, pool_file
from wfdsl import Conductor, Pool, UsageError, analyze
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


async def test_bounds_that_are_left_open_fit_the_context_of_the_server(guidance: str, tmp_path: Path) -> None:
    lines = ('grammar_dialect = "llguidance"', f"options = {{ context = {SHORT} }}")
    entry = Pool.load(str(pool_file(tmp_path, guidance, *lines))).entry(0)
    conductor = Conductor(entry, grammar="on", max_rounds=0)
    assert conductor.settings.grammar is not None
    assert conductor.settings.grammar.tokens(range(7), conductor.settings.max_steps) <= SHORT // 2


async def test_a_context_that_is_too_short_for_the_bounds_is_told_before_anything_is_asked(
    guidance: str, tmp_path: Path
) -> None:
    lines = ('grammar_dialect = "llguidance"', f"options = {{ context = {SHORT} }}")
    entry = Pool.load(str(pool_file(tmp_path, guidance, *lines))).entry(0)

    with pytest.raises(UsageError, match=f"the context of the Conductor's model is {SHORT}: lower max_steps"):
        Conductor(entry, grammar="on", max_subtask=200)


async def test_without_a_known_context_the_server_refuses_and_the_failure_names_the_cure(boss: Path) -> None:
    settings = Grammar(dialect="llguidance").call_settings(range(7), 5, recursion=False)

    with pytest.raises(WorkerFailure, match=r"options = \{ context = TOKENS \}") as raised:
        await ask(boss, QUESTION, **settings)

    assert not raised.value.retryable
