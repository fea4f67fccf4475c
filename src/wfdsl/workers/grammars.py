"""Which grammar a worker's model can be held to, and under which name a server takes it.

A server that does not know a field ignores it without a word, so a grammar is sent only to those that are known to
take one. Sources: llama.cpp, tools/server/README.md (`grammar`, GBNF); vLLM, docs/features/structured_outputs.md
(`structured_outputs`, EBNF in the form of GBNF for xgrammar, llguidance's dialect for its guidance backend; before 0.12
`guided_grammar`); SGLang, advanced_features/structured_outputs (`ebnf`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.workers.plain_json import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl.workers.pool import WorkerEntry

GrammarDialect: TypeAlias = Literal["gbnf", "llguidance"]


def dialect_of(entry: WorkerEntry) -> GrammarDialect:
    """The dialect in which an entry's model takes a grammar.

    Raises:
        UsageError: it takes none, and would leave one out without a word.
    """
    require_grammar(entry)
    if entry.grammar_dialect != "auto":
        return entry.grammar_dialect
    return "llguidance" if entry.provider == "transformers" else "gbnf"


def require_grammar(entry: WorkerEntry) -> None:
    """Refuse a worker whose model takes no grammar.

    Raises:
        UsageError: it takes none.
    """
    hosted = entry.provider == "openai" and (entry.base_url is None or entry.api == "responses")
    if hosted or entry.provider in ("anthropic", "google", "function"):
        who = "the responses API" if entry.api == "responses" else entry.provider
        raise UsageError(
            f'worker "{entry.name}": {who} takes no grammar; leave the grammar out, '
            f"or use a local model or a server of your own (base_url)"
        )


def with_grammar(entry: WorkerEntry, body: Mapping[str, Any], grammar: str) -> dict[str, Any]:
    """The further fields of a request to an entry's server, with a grammar under the name that the server knows.

    Raises:
        UsageError: the server takes none.
    """
    require_grammar(entry)
    field = "grammar" if entry.grammar_field == "auto" else entry.grammar_field
    if field != "structured_outputs":
        return {**body, field: grammar}
    return {**body, field: {**mapping(body.get(field)), "grammar": grammar}}
