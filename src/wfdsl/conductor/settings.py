"""A Conductor's configuration, resolved for its model: prompt, limits and grammar.

A completion that runs into the end of the context is cut, and a cut workflow is not valid. So the bounds of a grammar
are checked before anything is asked, and what is left open is chosen so that it fits.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from wfdsl.api import load
from wfdsl.conductor.checkpoint import PromptSettings, prompt_settings
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.prompt import Prompt
from wfdsl.conductor.workflow_tool import WorkflowTool, workflow_tool
from wfdsl.errors import UsageError
from wfdsl.language.check import AccessScheme
from wfdsl.language.constrained import MAX_PROSE, MAX_SUBTASK, gbnf, llguidance_lark, max_tokens_for
from wfdsl.language.workflow import Workflow
from wfdsl.workers.call_settings import GrammarDialect, dialect_of
from wfdsl.workers.entry import Options, WorkerEntry
from wfdsl.workers.model_folder import context_of_folder, slot_tokens

_USUAL_ROUNDS: Final = 1
"""Rounds after round 0. A model that was never trained to revise makes answers worse by it. Our choice."""
_LONGEST_INDEX: Final = (999,)
"""Pools are not known yet; further digits cost a token each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """Bounds of the grammar that forces a Conductor's completions to be valid workflows. The defaults are our choice.

    Where the model's context is known, bounds that are not given are as large as half of it allows, at the worst with a
    token for each byte; the other half is for the prompt (`fitted`).
    """

    max_prose: int | None = None
    """Characters before the lists; None: 200, or as many as fit."""
    max_subtask: int | None = None
    """Characters of a subtask; None: 200, or as many as fit."""
    access: AccessScheme = "lists"
    """What an access entry may be."""
    dialect: GrammarDialect | None = None
    """None: what the entry's provider takes, and llama.cpp's for a worker without an entry."""

    @property
    def bounds(self) -> dict[str, Any]:
        """The bounds in characters, and the access scheme."""
        prose = MAX_PROSE if self.max_prose is None else self.max_prose
        subtask = MAX_SUBTASK if self.max_subtask is None else self.max_subtask
        return {"max_prose": prose, "max_subtask": subtask, "access": self.access}

    def tokens(self, indices: Sequence[int], max_steps: int) -> int:
        """The number of tokens with which no completion is cut. Units: tokens.

        Raises:
            UsageError: no completion is within these bounds.
        """
        return max_tokens_for(indices, max_steps, **self.bounds)

    def call_settings(self, indices: Sequence[int], max_steps: int, *, recursion: bool) -> dict[str, Any]:
        """The settings of a call under the grammar, with room enough for every text that it allows."""
        return dict(_call_settings(self, tuple(indices), max_steps, recursion))


@lru_cache(maxsize=256)
def _call_settings(grammar: Grammar, indices: tuple[int, ...], max_steps: int, recursion: bool) -> dict[str, Any]:  # noqa: FBT001  (lru_cache keys)
    write = llguidance_lark if grammar.dialect == "llguidance" else gbnf
    return {
        "grammar": write(indices, max_steps, recursion=recursion, **grammar.bounds),
        "max_tokens": grammar.tokens(indices, max_steps),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorSettings:
    """A configuration with everything that depends on the model."""

    config: ConductorConfig
    """As it was given."""
    prompt: Prompt
    max_steps: int
    """The most steps of a workflow."""
    max_rounds: int
    """The most rounds after round 0."""
    default: Workflow | None
    """What runs if no completion of round 0 is valid; None: the run fails."""
    grammar: Grammar | None
    """None: the model writes freely."""
    tool: WorkflowTool | None = None
    """The tool that the model calls with its workflow; None: it writes a text."""
    instruction: str = ""
    """What every worker is told instead of its subtask; empty: its subtask."""
    worker: int | None = None
    """The worker that every step asks; None: as it was written."""


def resolve(
    config: ConductorConfig,
    entry: WorkerEntry | None,
    *,
    prompt: str | Prompt | None = None,
    default: Workflow | None = None,
) -> ConductorSettings:
    """The settings of a Conductor whose model has this entry; None: nothing is known of the model.

    `prompt` and `default` replace the names in the configuration with what is loaded already.

    Raises:
        UsageError: the prompt cannot be used, or the model takes no grammar or not this one.
        WorkflowError: the default workflow is not valid, or three lists cannot say it.
    """
    found = prompt_settings(
        entry, prompt=config.prompt if prompt is None else prompt, examples=config.examples, max_steps=config.max_steps
    )
    steps, rounds = limits_of(config, found)
    if default is None and config.default is not None:
        default = load(config.default)
    if default is not None:
        default.to_lists()  # it is shown in the conversation as a completion
    return ConductorSettings(
        config=config,
        prompt=found.prompt,
        max_steps=steps,
        max_rounds=rounds,
        default=default,
        grammar=_grammar(config, entry, steps),
        tool=_tool(config, entry),
    )


def limits_of(config: ConductorConfig, found: PromptSettings) -> tuple[int, int]:
    """The most steps of a workflow, and the most rounds after round 0, of a Conductor that is prompted as found.

    An effort sets both, within what the configuration says. A checkpoint keeps the steps that it was trained with, and
    an effort gives it no more rounds than it was trained with.
    """
    limits, given = config.limits, config.max_rounds
    steps = found.max_steps if found.trained or limits.max_steps is None else min(limits.max_steps, found.max_steps)
    if limits.max_rounds is not None:
        caps = (limits.max_rounds, found.max_rounds if given is None else given)
        return steps, min(cap for cap in caps if cap is not None)
    usual = _USUAL_ROUNDS if found.max_rounds is None else found.max_rounds
    return steps, usual if given is None else given


def fitted(grammar: Grammar, entry: WorkerEntry | None, max_steps: int) -> Grammar:
    """The grammar with what it leaves open, for the model of an entry; None: nothing is known of the model.

    Raises:
        UsageError: the model takes no grammar, or the longest completion does not fit.
    """
    context = None if entry is None else context_of(entry)
    if entry is not None and grammar.dialect is None:
        grammar = replace(grammar, dialect=dialect_of(entry))
    prose, subtask = grammar.max_prose, grammar.max_subtask

    def bounded(chars: int) -> Grammar:
        return replace(
            grammar, max_prose=chars if prose is None else prose, max_subtask=chars if subtask is None else subtask
        )

    room, sizes = math.inf if context is None else context // 2, range(1, MAX_PROSE + 1)
    at = bisect_right(sizes, room, key=lambda chars: bounded(chars).tokens(_LONGEST_INDEX, max_steps))
    found = bounded(sizes[max(at - 1, 0)])
    needed = found.tokens(_LONGEST_INDEX, max_steps)
    if context is not None and needed > context:
        raise UsageError(
            f"completions of {max_steps} steps under this grammar may take {needed} tokens, and the context of the "
            f"Conductor's model is {context}: lower max_steps, max_subtask or max_prose"
        )
    return found


def context_of(entry: WorkerEntry) -> int | None:
    """The tokens of an entry's context, prompt and completion together; None: not known."""
    if entry.provider == "local":
        return slot_tokens(entry)
    if entry.provider == "openai":
        return entry.options_as(Options).context
    return context_of_folder(Path(entry.model)) if entry.provider == "transformers" else None


def _grammar(config: ConductorConfig, entry: WorkerEntry | None, max_steps: int) -> Grammar | None:
    if config.grammar != "on":
        return None
    asked = Grammar(max_prose=config.max_prose, max_subtask=config.max_subtask, access=config.access)
    return fitted(asked, entry, max_steps)


def _tool(config: ConductorConfig, entry: WorkerEntry | None) -> WorkflowTool | None:
    if config.tool != "off" and config.grammar == "on":
        raise UsageError('conductor.tool and conductor.grammar = "on" exclude each other: leave one of them out')
    return workflow_tool(config.tool, entry, config.access, config.max_subtask)
