"""Policies by name: what commands, files and evaluations call a Conductor or a fixed workflow.

local             the small model on this machine, which is told less than others and held to a grammar
PROVIDER:MODEL    a model of a provider
FOLDER            a checkpoint, asked as it was trained; `local:FOLDER` and `transformers:FOLDER` choose what runs it
gym/tiny          a checkpoint that comes with a package, by the name under which it is registered
FILE.toml         a pool file with one worker
FILE.wf           a fixed workflow
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from wfdsl.api import load
from wfdsl.conductor.checkpoint import asked
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.model import LOCAL, model_entry
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.conductor.settings import Grammar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl.conductor.checkpoint import Trained
    from wfdsl.conductor.offer import Offering
    from wfdsl.conductor.policy import Policy
    from wfdsl.language.check import Profile
    from wfdsl.language.workflow import Workflow
    from wfdsl.workers.pool import Pool

_LOCAL_PROMPT: Final = "tiny"
_LOCAL_STEPS: Final = 3
_LOCAL_PROSE: Final = 0
_LOCAL_SUBTASK: Final = 80
"""Characters; the smallest models do not come to an end by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conducting:
    """What may be said of a Conductor besides its model. None: what suits the model."""

    entry: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the model's entry, such as `base_url`; those that are None do not count."""
    prompt: str | None = None
    """A template set, or the folder of a checkpoint that is served elsewhere."""
    examples: str | None = None
    max_steps: int | None = None
    grammar: Literal["auto", "on", "off"] = "auto"
    """`auto`: for `local`."""
    max_prose: int | None = None
    """Under the grammar, characters before the lists."""
    max_subtask: int | None = None
    """Under the grammar, characters of a subtask."""
    max_rounds: int | None = None
    reasks: int = 2
    profile: Profile = "lenient"
    default: Workflow | None = None
    call_factor: float | None = None
    offering: Offering | None = None


_AS_USUAL: Final = Conducting()


def named_policy(
    name: str, pool: Pool, conducting: Conducting = _AS_USUAL, *, params: Mapping[str, str] | None = None
) -> Policy:
    """The policy of a name: the workflow in a `.wf` file, read for the pool with its parameters, or a Conductor.

    Raises:
        UsageError: the name stands for nothing, or a setting cannot be used.
        WorkflowError: the file holds no valid workflow.
    """
    if name.endswith(".wf"):
        return WorkflowPolicy(load(name, pool=pool, params=params))
    return named_conductor(name, conducting)


def named_conductor(name: str, conducting: Conducting = _AS_USUAL) -> Conductor:
    """The Conductor of a name.

    Raises:
        UsageError: the name stands for no model, or a setting cannot be used.
    """
    prompt, max_steps, rounds = asked_as(name, conducting)
    return Conductor(
        model_entry(name, **conducting.entry),
        prompt=prompt,
        max_rounds=rounds if conducting.max_rounds is None else conducting.max_rounds,
        reasks=conducting.reasks,
        default=conducting.default,
        profile=conducting.profile,
        max_steps=max_steps,
        call_factor=conducting.call_factor,
        grammar=_grammar(name, conducting),
        offering=conducting.offering,
    )


def asked_as(name: str, conducting: Conducting = _AS_USUAL) -> Trained:
    """How the Conductor of a name is asked: the template set and the step limit, and how often it was made to revise.

    Raises:
        UsageError: the name stands for no model, the prompt cannot be used, or a checkpoint was trained with another.
    """
    prompt, max_steps = conducting.prompt, conducting.max_steps
    if name == LOCAL:
        prompt, max_steps = prompt or _LOCAL_PROMPT, _LOCAL_STEPS if max_steps is None else max_steps
    entry = model_entry(name, **conducting.entry)
    return asked(entry, prompt=prompt, examples=conducting.examples, max_steps=max_steps)


def _grammar(name: str, conducting: Conducting) -> Grammar | None:
    if conducting.grammar == "off" or (conducting.grammar == "auto" and name != LOCAL):
        return None
    prose, subtask = conducting.max_prose, conducting.max_subtask
    if name == LOCAL:
        prose = _LOCAL_PROSE if prose is None else prose
        subtask = _LOCAL_SUBTASK if subtask is None else subtask
    return Grammar(max_prose=prose, max_subtask=subtask)
