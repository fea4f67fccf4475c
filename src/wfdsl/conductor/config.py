"""The options of a Conductor: which model writes workflows, how it is prompted, and which workers it is offered.

One class is the table [conductor] of a file, the command line options, the arguments of `Conductor` and the entry in
a manifest. What is None depends on the model and is resolved where the model is known (`wfdsl.conductor.settings`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wfdsl.conductor.effort import Effort, EffortLimits, EffortTable
from wfdsl.config import check_options, option
from wfdsl.language.check import AccessScheme

ToolForm: TypeAlias = Literal["off", "grammar", "function"]
LOCAL: Final = "local"
"""The name of the small model that runs on this machine."""
MAX_RESPONSE_CHARS: Final = 20_000
"""The longest response that a revision is shown whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorConfig:
    """Which model conducts, and how."""

    model: str | None = option(
        None,
        help="a worker of the pool by its name, openai:MODEL, anthropic:MODEL, a checkpoint's folder, a pool file with "
        "one worker, a .wf file that is run as it is, a policy of your own as FILE.py:NAME, or local",
        flag="--conductor",
        metavar="MODEL",
        minimum=1,
        path=True,
        default_text="the Conductor that the pool names, else its first worker; local for the pool local",
    )
    prompt: str | None = option(
        None,
        help="the template set: paper, tiny or a file of your own",
        flag="--prompt",
        metavar="NAME|FILE",
        minimum=1,
        path=True,
        default_text="paper; tiny for `local`; what a checkpoint was trained with",
    )
    examples: str | None = option(
        None,
        help="the few-shot examples: a shipped set, a file, or none",
        flag="--examples",
        metavar="NAME|FILE",
        minimum=1,
        path=True,
        default_text="the template set's",
    )
    max_steps: int | None = option(
        None,
        help="the most steps of a workflow",
        flag="--max-steps",
        metavar="N",
        minimum=1,
        default_text="5; 3 for `local`; what a checkpoint was trained with",
    )
    """The default of 5 is the limit of arXiv 2512.04388, section 4."""
    max_rounds: int | None = option(
        None,
        help="the most rounds after round 0; in each, the Conductor sees the answer and may revise the workflow",
        flag="--max-rounds",
        metavar="N",
        minimum=0,
        default_text="1; what a checkpoint was trained with",
    )
    """Source of the idea: arXiv 2512.04388, the recursive Conductor. The default of 1 is our choice."""
    effort: Effort | None = option(
        None,
        help="how much to spend on a question: minimal asks one worker",
        flag="--effort",
        default_text="medium for a checkpoint that was trained with efforts; else as the other options say",
    )
    efforts: EffortTable = option(
        EffortTable,
        help="the limits of each effort: max_rounds, max_steps and usd",
        default_text="minimal: 0 rounds, 1 step; low: 0 rounds, 3 steps; medium: none; high: 2 rounds",
    )
    max_response_chars: int = option(
        MAX_RESPONSE_CHARS,
        help="the most characters of an answer that a revision is shown; a longer one is abridged in the middle",
        flag="--max-response-chars",
        metavar="N",
        minimum=1,
    )
    """The default is our choice: about the 4096 tokens that workers have in arXiv 2512.04388."""
    reasks: int = option(
        2,
        help="how often a completion that is not valid is asked for again, with its diagnostics",
        flag="--reasks",
        metavar="N",
        minimum=0,
    )
    """Our choice."""
    profile: Literal["strict", "lenient"] = option(
        "lenient", help="how completions are read: lenient repairs what it can, and says so", flag="--profile"
    )
    access: AccessScheme = option(
        "lists",
        help="what an access entry may be: also a list of earlier steps, or only [] and all (binary)",
        flag="--access",
    )
    """Source: arXiv 2512.04388, whose main results are under the binary scheme; lists are its ablation."""
    default: str | None = option(
        None,
        help="the workflow that runs if no completion of round 0 is valid",
        flag="--default",
        metavar="FILE.wf",
        minimum=1,
        path=True,
        default_text="none: the run fails",
    )
    call_factor: float | None = option(
        None,
        help="a revision makes at most X times the calls of round 0",
        flag="--call-factor",
        metavar="X",
        above=0,
        default_text="no limit",
    )
    """With one revision, 1 keeps the total within twice round 0, as the evaluation of arXiv 2512.04388 did."""
    grammar: Literal["auto", "on", "off"] = option(
        "auto",
        help="force completions to be valid workflows, where the model's server takes grammars; auto: only for `local`",
        flag="--grammar",
    )
    tool: ToolForm = option(
        "off",
        help="have the model call a tool with its workflow: function, or a custom tool of OpenAI's with a grammar",
        flag="--conductor-tool",
    )
    max_prose: int | None = option(
        None,
        help="under the grammar, the most characters before the lists",
        metavar="N",
        minimum=0,
        default_text="200, or as many as fit the model's context; 0 for `local`",
    )
    max_subtask: int | None = option(
        None,
        help="under the grammar, the most characters of a subtask",
        metavar="N",
        minimum=1,
        default_text="200, or as many as fit the model's context; 80 for `local`",
    )
    grammar_tokens: int | None = option(
        None,
        help="under the grammar, the most tokens of a completion",
        metavar="N",
        minimum=1,
        default_text="half of the model's context where that is known, else as many as the longest completion takes",
    )
    without: tuple[str, ...] = option(
        (), help="leave out workers, by name or tag; may be repeated", flag="--without", metavar="WORKER"
    )
    pick: int | None = option(
        None,
        help="offer K workers, drawn at random for each question",
        flag="--pick",
        metavar="K",
        minimum=1,
        default_text="all",
    )
    shuffle: bool = option(
        default=False, help="number the workers in random order for each question, from 0 upwards", flag="--shuffle"
    )
    seed: int = option(
        0, help="the seed of --pick and --shuffle, used together with the question", flag="--subset-seed", metavar="N"
    )
    base_url: str | None = option(
        None,
        help="the server of the Conductor's model",
        flag="--base-url",
        metavar="URL",
        minimum=1,
        default_text="the provider's own",
    )
    api_key_env: str | None = option(
        None,
        help="the environment variable that holds the key of the Conductor's model",
        flag="--api-key-env",
        metavar="NAME",
        pattern=r"[A-Za-z_][A-Za-z0-9_]*",
        default_text="the provider's usual one",
    )
    max_tokens: int | None = option(
        None,
        help="the most tokens of a completion",
        flag="--max-tokens",
        metavar="N",
        minimum=1,
        default_text="1024 for a checkpoint, 4096 for a provider's model, what a pool file says of its worker",
    )
    temperature: float | None = option(
        None,
        help="the sampling temperature of the Conductor's model",
        metavar="T",
        minimum=0,
        maximum=2,
        default_text="the provider's default",
    )

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            UsageError: a value has the wrong type or is outside its limits.
        """
        check_options(self)

    @property
    def limits(self) -> EffortLimits:
        """The limits of its effort."""
        return self.efforts.of(self.effort)
