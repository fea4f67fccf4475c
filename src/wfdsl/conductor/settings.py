"""How a Conductor is asked and what it may do: one value that a node of a pool and a solver share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from wfdsl.check import DEFAULT_MAX_STEPS
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.syntax.constrained import gbnf, llguidance_lark, max_tokens_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.syntax.completion import Profile
    from wfdsl.workflow import Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """Bounds of the grammar that the Conductor's server is given, so that every completion is a valid workflow.

    A server has to take llama.cpp's dialect as `grammar` in a request. A transformers worker takes llguidance's, which
    its Conductor chooses by itself. The defaults are our choice.
    """

    max_prose: int = 200
    """Characters before the lists."""
    max_subtask: int = 200
    """Characters of a subtask."""
    dialect: Literal["gbnf", "llguidance"] = "gbnf"

    def call_settings(self, ordinals: Sequence[int], max_steps: int, *, recursion: bool) -> dict[str, Any]:
        """The settings of a call under the grammar, with room enough for every text that it allows."""
        bounds: dict[str, Any] = {"max_prose": self.max_prose, "max_subtask": self.max_subtask, "recursion": recursion}
        return {
            "grammar": (gbnf if self.dialect == "gbnf" else llguidance_lark)(ordinals, max_steps, **bounds),
            "max_tokens": max_tokens_for(ordinals, max_steps, **bounds),
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
        if self.default is not None:
            self.default.to_lists()  # it stands in the conversation as a completion, so lists must be able to say it
        if self.call_factor is not None and not self.call_factor > 0:
            raise UsageError(f"a Conductor's call_factor is a number above 0, not {self.call_factor}")
