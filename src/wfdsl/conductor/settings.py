"""A Conductor's configuration, resolved for its model: prompt, limits and grammar.

A completion that runs into the end of the context is cut, and a cut workflow is not valid. So the bounds of a grammar
are checked before anything is asked, and what is left open is chosen so that it fits.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from wfdsl.api import load
from wfdsl.conductor.checkpoint import TrainedPrompt, load_prompt
from wfdsl.conductor.config import EFFORT_LIMITS, ConductorConfig
from wfdsl.conductor.prompt import DEFAULT_PROMPT, Prompt, shipped_prompts
from wfdsl.conductor.workflow_tool import WorkflowTool, workflow_tool
from wfdsl.errors import UsageError
from wfdsl.language.check import DEFAULT_MAX_STEPS, AccessScheme
from wfdsl.language.constrained import MAX_PROSE, MAX_SUBTASK, gbnf, llguidance_lark, max_tokens_for
from wfdsl.language.workflow import Workflow
from wfdsl.workers.call_settings import GrammarDialect, dialect_of
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.model_folder import context_of

_USUAL_ROUNDS: Final = 1
"""Rounds after round 0. A model that was never trained to revise makes answers worse by it. Our choice."""
_LONGEST_INDEX: Final = (999,)
"""Pools are not known yet; further digits cost a token each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """Bounds of the grammar that forces a Conductor's completions to be valid workflows. The defaults are our choice.

    Where the model's context is known, bounds that its configuration leaves open are as large as half of it allows, at
    the worst with a token for each byte; the other half is for the prompt (`_fitted`).
    """

    max_prose: int = MAX_PROSE
    """Characters before the lists."""
    max_subtask: int = MAX_SUBTASK
    """Characters of a subtask."""
    access: AccessScheme = "lists"
    """What an access entry may be."""
    dialect: GrammarDialect = "gbnf"

    @property
    def bounds(self) -> dict[str, Any]:
        """The bounds in characters, and the access scheme."""
        return {"max_prose": self.max_prose, "max_subtask": self.max_subtask, "access": self.access}

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

    `prompt` and `default` replace the names in the configuration with what is loaded already. A checkpoint is prompted
    as it was trained: by the file in its folder or, served elsewhere, by the folder that `prompt` names.

    Raises:
        UsageError: the prompt cannot be used, a checkpoint would be prompted in another way than it was trained, or the
            model takes no grammar or not this one.
        WorkflowError: the default workflow is not valid, or three lists cannot say it.
    """
    prompt = config.prompt if prompt is None else prompt
    trained = None
    if entry is not None and entry.provider in ("local", "transformers") and entry.model:
        path = Path(entry.model).expanduser()
        trained = load_prompt(path.parent if path.is_file() else path)  # a GGUF file is in its checkpoint's folder
    if trained is None and isinstance(prompt, str) and prompt not in shipped_prompts():
        trained = load_prompt(prompt)
        prompt = prompt if trained is None else None
    if trained is None:
        found = _loaded(prompt, config.examples)
    else:
        found = trained.prompt
        _require_as_trained(config, prompt, trained)
    steps, rounds = _limits(config, trained)
    if default is None and config.default is not None:
        default = load(config.default)
    if default is not None:
        default.to_lists()  # it is shown in the conversation as a completion
    if config.tool != "off" and config.grammar == "on":
        raise UsageError('conductor.tool and conductor.grammar = "on" exclude each other: leave one of them out')
    return ConductorSettings(
        config=config,
        prompt=found,
        max_steps=steps,
        max_rounds=rounds,
        default=default,
        grammar=_fitted(config, entry, steps) if config.grammar == "on" else None,
        tool=workflow_tool(config.tool, entry, config.access, config.max_subtask),
    )


def _loaded(prompt: str | Prompt | None, examples: str | None) -> Prompt:
    if isinstance(prompt, Prompt):
        return prompt
    return Prompt.load(DEFAULT_PROMPT if prompt is None else prompt, examples=examples)


def _require_as_trained(config: ConductorConfig, prompt: str | Prompt | None, trained: TrainedPrompt) -> None:
    given = prompt is not None or config.examples is not None
    if given and _loaded(prompt, config.examples).hash != trained.prompt.hash:
        raise UsageError(
            "this checkpoint is prompted as it was trained: leave out other prompts and examples, "
            "or name another Conductor"
        )
    if config.max_steps not in (None, trained.max_steps):
        raise UsageError(
            f"this checkpoint is prompted as it was trained, with max_steps = {trained.max_steps}: leave max_steps out"
        )


def _limits(config: ConductorConfig, trained: TrainedPrompt | None) -> tuple[int, int]:
    """The most steps of a workflow, and the most rounds after round 0.

    An effort sets both, within what the configuration says. A checkpoint keeps the steps that it was trained with, and
    an effort gives it no more rounds than it was trained with.
    """
    effort_rounds, effort_steps = EFFORT_LIMITS.get(config.effort, (None, None))
    known, given = None if trained is None else trained.max_rounds, config.max_rounds
    steps = min(filter(None, (effort_steps, config.max_steps or DEFAULT_MAX_STEPS)))
    if trained is not None:
        steps = trained.max_steps
    if effort_rounds is not None:
        caps = (effort_rounds, known if given is None else given)
        return steps, min(cap for cap in caps if cap is not None)
    usual = _USUAL_ROUNDS if known is None else known
    return steps, usual if given is None else given


def _fitted(config: ConductorConfig, entry: WorkerEntry | None, max_steps: int) -> Grammar:
    """The grammar for the model of an entry, with bounds for what is left open; None: nothing is known of the model.

    Raises:
        UsageError: the model takes no grammar, or the longest completion does not fit.
    """
    context = None if entry is None else context_of(entry)
    dialect: GrammarDialect = "gbnf" if entry is None else dialect_of(entry)

    def bounded(chars: int) -> Grammar:
        prose, subtask = (chars if each is None else each for each in (config.max_prose, config.max_subtask))
        return Grammar(max_prose=prose, max_subtask=subtask, access=config.access, dialect=dialect)

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
