"""Which dialect of the grammar a Conductor's model is given."""

from __future__ import annotations

import pytest

from wfdsl import Conductor, UsageError, WorkerEntry
from wfdsl.conductor.settings import Grammar


@pytest.mark.parametrize(
    ("entry", "opening"),
    [
        (WorkerEntry(name="m", provider="local"), "root ::="),
        (WorkerEntry(name="m", provider="openai", base_url="http://127.0.0.1:1/v1"), "root ::="),
        (WorkerEntry(name="m", provider="transformers", model="folder"), "start:"),
    ],
)
def test_a_provider_is_given_the_dialect_that_it_takes(entry: WorkerEntry, opening: str) -> None:
    grammar = Conductor(entry, grammar=Grammar(max_prose=10, max_subtask=10)).settings.grammar

    assert grammar is not None
    assert opening in grammar.call_settings([0, 2], 2, recursion=False)["grammar"]


@pytest.mark.parametrize("provider", ["anthropic", "google", "openai"])
def test_a_provider_that_would_ignore_a_grammar_is_refused(provider: str) -> None:
    with pytest.raises(UsageError, match=f"{provider} takes no grammar"):
        Conductor(WorkerEntry(name="m", provider=provider), grammar=Grammar())
