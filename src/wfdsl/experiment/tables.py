"""The tables [conductor], [budget] and [run] as values, with their defaults."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

_MAX_WHOLE = 2**63 - 1
_Count: TypeAlias = Annotated[int, Field(ge=1, le=_MAX_WHOLE)]
_CountOrNone: TypeAlias = Annotated[int, Field(ge=0, le=_MAX_WHOLE)]
_Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Seed: TypeAlias = Annotated[int, Field(ge=-_MAX_WHOLE, le=_MAX_WHOLE)]


class _Table(BaseModel):
    """No unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)


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


MODELS: dict[str, type[_Table]] = {"budget": BudgetTable, "run": RunTable}
"""The tables whose keys are known here."""
