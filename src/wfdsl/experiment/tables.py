"""The tables [conductor], [budget] and [run] as values, with their defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _several(value: Any) -> Any:
    """A single text stands for a list of one."""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(value, str):
        return (value,)
    raise ValueError("input should be a text or a list of texts")


_Texts: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_several)]
_MAX_WHOLE = 2**63 - 1
_Count: TypeAlias = Annotated[int, Field(ge=1, le=_MAX_WHOLE)]
_CountOrNone: TypeAlias = Annotated[int, Field(ge=0, le=_MAX_WHOLE)]
_Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Seed: TypeAlias = Annotated[int, Field(ge=-_MAX_WHOLE, le=_MAX_WHOLE)]


class _Table(BaseModel):
    """No unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)


class ConductorTable(_Table):
    """Who answers questions, and how: the table [conductor]."""

    model: str = Field(default="local", min_length=1)
    """`local`, `PROVIDER:MODEL`, a checkpoint's folder or a name for one, a pool file with one worker, or a `.wf` file.
    A pool that has a Conductor of its own goes before the default."""
    prompt: str | None = Field(default=None, min_length=1)
    """The template set, by name or file; default: `paper`, and `tiny` for `local`."""
    examples: str | None = Field(default=None, min_length=1)
    """The few-shot examples: a shipped set, a file, or `none`; default: the template set's."""
    max_steps: _Count | None = None
    """The most steps of a workflow; default: 5, and 3 for `local`."""
    rounds: _CountOrNone | None = None
    """The most revisions; default: 1, and what it was trained for where a checkpoint says so."""
    reasks: _CountOrNone = 2
    """How often an invalid completion is asked for again, at most."""
    profile: Literal["strict", "lenient"] = "lenient"
    """How completions are read."""
    default: str | None = Field(default=None, min_length=1)
    """The `.wf` file that runs where no completion is valid; default: none, and the run fails."""
    call_factor: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """A revision makes at most so many times the first round's calls; default: any number."""
    grammar: Literal["auto", "on", "off"] = "auto"
    """Whether a grammar holds the model to valid workflows; `auto`: for `local`."""
    max_prose: _CountOrNone | None = None
    """Under the grammar, characters before the lists; default: 200 or as many as fit, and 0 for `local`."""
    max_subtask: _Count | None = None
    """Under the grammar, characters of a subtask; default: 200 or as many as fit, and 80 for `local`."""
    without: _Texts = ()
    """Workers that are not offered, by name or tag."""
    pick: _Count | None = None
    """How many workers are offered, drawn for each question; default: all."""
    shuffle: bool = False
    """Whether workers are numbered anew for each question, from 0 upwards."""
    seed: _Seed = 0
    """What both draws depend on, besides the question."""
    base_url: str | None = Field(default=None, min_length=1)
    """The model's server, if it is not the provider's own."""
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The environment variable that holds the model's key; default: the provider's usual one."""
    max_tokens: _Count | None = None
    """Tokens of a completion, at most; default: 1024."""
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    """How freely the model samples; default: the provider's."""


class BudgetTable(_Table):
    """The most that a command may spend: the table [budget]. What is not set is not limited."""

    usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """US dollars."""
    tokens: _CountOrNone | None = None
    """Input and output tokens."""
    calls: _CountOrNone | None = None
    """Calls of workers and Conductors."""
    seconds: _Seconds | None = None
    """Seconds of wall time."""


class RunTable(_Table):
    """How workflows are run: the table [run]."""

    concurrency: _Count | None = None
    """Calls in flight at once, at most; default: no limit but the workers' own."""
    parallel: _Count = 4
    """Questions at a time, where there are many."""
    seed: _Seed | None = None
    """Makes workers that honour a seed repeatable; default: none."""
    timeout_s: _Seconds | None = None
    """Seconds for a whole run, at most; default: no limit."""
    step_timeout_s: _Seconds | None = None
    """Seconds for a step, at most; default: no limit but the workers' own."""
    question_for: Literal["all", "first"] = "all"
    """Which steps are shown the question."""
    run_dead_steps: bool = False
    """Whether steps that cannot change the answer are run too."""
    max_depth: _CountOrNone = 1
    """Levels of Conductor nodes."""
    journal: bool = True
    """Whether calls are kept, so that a run can be gone on with."""
    reuse: bool = False
    """Whether replies are used again that other runs have in the journal."""


MODELS: dict[str, type[_Table]] = {"conductor": ConductorTable, "budget": BudgetTable, "run": RunTable}
"""The tables whose keys are known here."""
