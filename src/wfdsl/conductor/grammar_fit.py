"""Making a grammar fit a Conductor's model: the dialect that it takes, and bounds for which its context has room.

A completion that runs into the end of the context is cut, and a cut workflow is none. So bounds are checked before
anything is asked, and what is left open is chosen so that it fits.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wfdsl.errors import UsageError
from wfdsl.language.constrained.completions import MAX_PROSE
from wfdsl.workers.call_settings import dialect_of
from wfdsl.workers.model_folder import context_of_folder, slot_tokens

if TYPE_CHECKING:
    from wfdsl.conductor.settings import Grammar
    from wfdsl.workers.entry import WorkerEntry

_ORDINALS: Final = (999,)  # pools are not known yet; further digits cost a token each


def fitted(grammar: Grammar, entry: WorkerEntry | None, max_steps: int) -> Grammar:
    """The grammar with what it leaves open, for the model of an entry; None: nothing is known of the model.

    Raises:
        UsageError: the model takes no grammar, or the longest completion does not fit.
    """
    context = None if entry is None else context_of(entry)
    if entry is not None and grammar.dialect is None:
        grammar = replace(grammar, dialect=dialect_of(entry))
    grammar = _bounded(grammar, max_steps, _room(grammar, context))
    limit = context if grammar.max_tokens is None else grammar.max_tokens
    needed = grammar.tokens(_ORDINALS, max_steps)
    if limit is not None and needed > limit:
        whose = "the context of the Conductor's model" if grammar.max_tokens is None else "the grammar's max_tokens"
        raise UsageError(
            f"completions of {max_steps} steps under this grammar may take {needed} tokens, and {whose} is {limit}: "
            f"lower max_steps, max_subtask or max_prose, or raise the limit"
        )
    return grammar


def context_of(entry: WorkerEntry) -> int | None:
    """The tokens of an entry's context, prompt and completion together; None: not known."""
    if entry.provider == "local":
        return slot_tokens(entry)
    return context_of_folder(Path(entry.model)) if entry.provider == "transformers" else None


def _room(grammar: Grammar, context: int | None) -> int | None:
    """The tokens for which bounds that are left open are chosen."""
    if grammar.max_tokens is not None:
        return grammar.max_tokens
    return None if context is None else context // 2


def _bounded(grammar: Grammar, max_steps: int, room: int | None) -> Grammar:
    """The grammar with every bound given: those left open are equal, and as large as the room allows."""
    prose, subtask = grammar.max_prose, grammar.max_subtask
    if prose is not None and subtask is not None:
        return grammar

    def bounded(chars: int) -> Grammar:
        return replace(
            grammar,
            max_prose=chars if prose is None else prose,
            max_subtask=chars if subtask is None else subtask,
        )

    if room is None:
        return bounded(MAX_PROSE)
    sizes = range(1, MAX_PROSE + 1)
    at = bisect_right(sizes, room, key=lambda chars: bounded(chars).tokens(_ORDINALS, max_steps))
    return bounded(sizes[max(at - 1, 0)])
