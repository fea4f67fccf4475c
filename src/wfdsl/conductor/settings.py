"""How a Conductor is asked and what it may do: one value that a node of a pool and a solver share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_args

from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.language.check import DEFAULT_MAX_STEPS, Profile
from wfdsl.language.constrained import gbnf, llguidance_lark, max_tokens_for
from wfdsl.language.constrained.completions import MAX_PROSE, MAX_SUBTASK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.language.workflow import Workflow
    from wfdsl.workers.call_settings import GrammarDialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """Bounds of the grammar that the Conductor's model is held to, so that every completion is a valid workflow.

    What is None is chosen for the model's entry when a Conductor is made (`grammar_fit.fitted`). The defaults are our
    choice.
    """

    max_prose: int | None = None
    """Characters before the lists; None: 200, or as many as fit."""
    max_subtask: int | None = None
    """Characters of a subtask; None: 200, or as many as fit."""
    max_tokens: int | None = None
    """Tokens that the longest completion may take, at the worst a token for each byte; None: for a model whose context
    is known, half of it, which leaves the other half to the prompt; for others as many as the bounds need."""
    dialect: GrammarDialect | None = None
    """None: what the entry's provider takes, and llama.cpp's for a worker without an entry."""

    @property
    def bounds(self) -> dict[str, Any]:
        """The bounds in characters."""
        prose = MAX_PROSE if self.max_prose is None else self.max_prose
        return {"max_prose": prose, "max_subtask": MAX_SUBTASK if self.max_subtask is None else self.max_subtask}

    def tokens(self, ordinals: Sequence[int], max_steps: int) -> int:
        """The number of tokens with which no completion is cut. Units: tokens.

        Raises:
            UsageError: nothing is within these bounds.
        """
        return max_tokens_for(ordinals, max_steps, **self.bounds)

    def call_settings(self, ordinals: Sequence[int], max_steps: int, *, recursion: bool) -> dict[str, Any]:
        """The settings of a call under the grammar, with room enough for every text that it allows."""
        return dict(_call_settings(self, tuple(ordinals), max_steps, recursion))


@lru_cache(maxsize=256)
def _call_settings(grammar: Grammar, ordinals: tuple[int, ...], max_steps: int, recursion: bool) -> dict[str, Any]:  # noqa: FBT001  (lru_cache keys)
    write = llguidance_lark if grammar.dialect == "llguidance" else gbnf
    return {
        "grammar": write(ordinals, max_steps, recursion=recursion, **grammar.bounds),
        "max_tokens": grammar.tokens(ordinals, max_steps),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorSettings:
    """The settings of a Conductor, but for its model."""

    prompt: Prompt = field(default_factory=Prompt.load)
    max_rounds: int = 1
    """How many times it is shown the answer and may revise the workflow. Source of the idea: arXiv 2512.04388."""
    reasks: int = 2
    """How often a completion that is not valid is asked for again. Our choice."""
    default: Workflow | None = None
    """What runs where none of the first round's completions is valid; None: the run fails."""
    profile: Profile = "lenient"
    max_steps: int = DEFAULT_MAX_STEPS
    grammar: Grammar | None = None
    """None: the model writes freely."""
    call_factor: float | None = None
    """A revision may make at most so many times the first round's calls; None: any number.

    With one round, 1 keeps the total within twice the first round, as the paper's evaluation did."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used.

        Raises:
            UsageError: a number is out of its range.
            WorkflowError: three lists cannot say the default workflow.
        """
        for name, least in (("max_rounds", 0), ("reasks", 0), ("max_steps", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"a Conductor's {name} is a number from {least}, not {getattr(self, name)}")
        if self.profile not in get_args(Profile):
            known = " or ".join(get_args(Profile))
            raise UsageError(f"a Conductor's profile is {known}, not {self.profile!r}")
        if self.default is not None:
            self.default.to_lists()  # it stands in the conversation as a completion, so lists must be able to say it
        if self.call_factor is not None and not self.call_factor > 0:
            raise UsageError(f"a Conductor's call_factor is a number above 0, not {self.call_factor}")
