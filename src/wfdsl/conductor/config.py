"""The options of a Conductor: which model writes workflows, how it is prompted, and which workers it is offered.

One class is the table [conductor] of a file, the command line options, the arguments of `Conductor` and the entry in
a manifest. What is None depends on the model and is resolved where the model is known (`wfdsl.conductor.settings`).

An effort says how much a Conductor may spend on a question, by the names that OpenAI's `reasoning_effort` has. A
Conductor that was trained with prices in its prompt is told the price of a step that belongs to the effort: its
template set has a text `effort_NAME` for each. Any other Conductor gets limits. The numbers are our choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wfdsl.language.check import AccessScheme
from wfdsl.settings import Table, option

ToolForm: TypeAlias = Literal["off", "grammar", "function"]
LOCAL: Final = "local"
"""The name of the small model that runs on this machine."""
MAX_RESPONSE_CHARS: Final = 20_000
"""The longest response that a revision is shown whole."""
Effort: TypeAlias = Literal["minimal", "low", "medium", "high"]
EFFORTS: Final[tuple[Effort, ...]] = ("minimal", "low", "medium", "high")
DEFAULT_EFFORT: Final[Effort] = "medium"
"""What a Conductor with prices in its prompt is told unless an effort is given."""
EFFORT_LIMITS: Final[dict[Effort | None, tuple[int | None, int | None]]] = {
    "minimal": (0, 1),
    "low": (0, 3),
    "high": (2, None),
}
"""The most rounds after round 0 and, unless the Conductor is a checkpoint, the most steps of a workflow. None: as
without an effort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorConfig(Table):
    """Which model conducts, and how."""

    model: str | None = option(
        None,
        "a worker of the pool by its name, openai:MODEL, anthropic:MODEL, a checkpoint's folder, a pool file with "
        "one worker, a .wf file that is run as it is, a policy of your own as FILE.py:NAME, or local",
        "--conductor",
        metavar="MODEL",
        default_text="the Conductor that the pool names, else its first worker; local for the pool local",
        path=True,
        min_length=1,
    )
    prompt: str | None = option(
        None,
        "the template set: paper, tiny or a file of your own",
        metavar="NAME|FILE",
        default_text="paper; tiny for `local`; what a checkpoint was trained with",
        path=True,
        min_length=1,
    )
    examples: str | None = option(
        None,
        "the few-shot examples: a shipped set, a file, or none",
        metavar="NAME|FILE",
        default_text="the template set's",
        path=True,
        min_length=1,
    )
    max_steps: int | None = option(
        None,
        "the most steps of a workflow",
        "--max-steps",
        default_text="5; 3 for `local`; what a checkpoint was trained with",
        ge=1,
    )
    """The default of 5 is the limit of arXiv 2512.04388, section 4."""
    max_rounds: int | None = option(
        None,
        "the most rounds after round 0; in each, the Conductor sees the answer and may revise the workflow",
        "--max-rounds",
        default_text="1; what a checkpoint was trained with",
        ge=0,
    )
    """Source of the idea: arXiv 2512.04388, the recursive Conductor. The default of 1 is our choice."""
    effort: Effort | None = option(
        None,
        "how much to spend on a question: minimal asks one worker",
        "--effort",
        default_text="medium for a checkpoint that was trained with efforts; else as the other options say",
    )
    max_response_chars: int = option(
        MAX_RESPONSE_CHARS,
        "the most characters of an answer that a revision is shown; a longer one is abridged in the middle",
        ge=1,
    )
    """The default is our choice: about the 4096 tokens that workers have in arXiv 2512.04388."""
    reasks: int = option(2, "how often a completion that is not valid is asked for again, with its diagnostics", ge=0)
    """Our choice."""
    profile: Literal["strict", "lenient"] = option(
        "lenient", "how completions are read: lenient repairs what it can, and says so", "--profile"
    )
    access: AccessScheme = option(
        "lists", "what an access entry may be: also a list of earlier steps, or only [] and all (binary)", "--access"
    )
    """Source: arXiv 2512.04388, whose main results are under the binary scheme; lists are its ablation."""
    default: str | None = option(
        None,
        "the workflow that runs if no completion of round 0 is valid",
        metavar="FILE.wf",
        default_text="none: the run fails",
        path=True,
        min_length=1,
    )
    call_factor: float | None = option(
        None, "a revision makes at most X times the calls of round 0", default_text="no limit", gt=0
    )
    """With one revision, 1 keeps the total within twice round 0, as the evaluation of arXiv 2512.04388 did."""
    grammar: Literal["auto", "on", "off"] = option(
        "auto",
        "force completions to be valid workflows, where the model's server takes grammars; auto: only for `local`",
        "--grammar",
    )
    tool: ToolForm = option(
        "off",
        "have the model call a tool with its workflow: function, or a custom tool of OpenAI's with a grammar",
    )
    max_prose: int | None = option(
        None,
        "under the grammar, the most characters before the lists",
        default_text="200, or as many as fit the model's context; 0 for `local`",
        ge=0,
    )
    max_subtask: int | None = option(
        None,
        "under the grammar, the most characters of a subtask",
        default_text="200, or as many as fit the model's context; 80 for `local`",
        ge=1,
    )
    without: tuple[str, ...] = option((), "leave out workers, by name or tag", metavar="WORKER")
    pick: int | None = option(
        None, "offer K workers, drawn at random for each question", metavar="K", default_text="all", ge=1
    )
    shuffle: bool = option(False, "number the workers in random order for each question, from 0 upwards")
    seed: int = option(0, "the seed of pick and shuffle, used together with the question")
    base_url: str | None = option(
        None,
        "the server of the Conductor's model",
        "--base-url",
        metavar="URL",
        default_text="the provider's own",
        min_length=1,
    )
    api_key_env: str | None = option(
        None,
        "the environment variable that holds the key of the Conductor's model",
        "--api-key-env",
        metavar="NAME",
        default_text="the provider's usual one",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
    )
    max_tokens: int | None = option(
        None,
        "the most tokens of a completion",
        default_text="1024 for a checkpoint, 4096 for a provider's model, what a pool file says of its worker",
        ge=1,
    )
    temperature: float | None = option(
        None,
        "the sampling temperature of the Conductor's model",
        metavar="T",
        default_text="the provider's default",
        ge=0,
        le=2,
    )
