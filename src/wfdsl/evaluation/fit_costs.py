"""What fitting policies, and training Conductors, has cost: kept per policy, in a file of the evaluation's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from wfdsl.conductor.policy import Policy
from wfdsl.errors import UsageError
from wfdsl.interpreter.record import total_usd
from wfdsl.render.status import dollars

FILE: Final = "fit_costs.json"
TRAINING_COST: Final = "training_cost.json"
"""The file of a checkpoint that says what the workers have cost that trained it."""


@dataclass(frozen=True, slots=True)
class FitCost:
    """What fitting has cost, as if nothing had come from the journal."""

    calls: int
    tokens: int
    usd: float | None
    """US dollars by the price list; None if a price is not known."""

    def __add__(self, other: FitCost) -> FitCost:
        return FitCost(self.calls + other.calls, self.tokens + other.tokens, total_usd([self.usd, other.usd]))


_T = TypeVar("_T")
_COST: Final = TypeAdapter(FitCost)
_COSTS: Final = TypeAdapter(dict[str, FitCost])


def fit_costs(policies: Mapping[str, Policy]) -> dict[str, FitCost]:
    """What each fitted policy has spent on fitting, and what training each Conductor from a checkpoint has cost.

    Raises:
        UsageError: a checkpoint's file cannot be read.
    """
    found = {name: getattr(policy, "fit_cost", None) or _training_cost(policy) for name, policy in policies.items()}
    return {name: fit_cost for name, fit_cost in found.items() if fit_cost is not None}


def _training_cost(policy: Policy) -> FitCost | None:
    model = getattr(getattr(policy, "entry", None), "model", None)
    path = Path(str(model or ""), TRAINING_COST)
    return _read(path, _COST, "export the model again") if model and path.is_file() else None


def write_fit_costs(folder: Path, costs: Mapping[str, FitCost]) -> None:
    """Write costs to the folder, beside those that are there already; without any nothing is written.

    Raises:
        UsageError: what is there cannot be read.
    """
    if costs:
        (folder / FILE).write_bytes(_COSTS.dump_json({**read_fit_costs(folder), **costs}, indent=2))


def read_fit_costs(folder: Path) -> dict[str, FitCost]:
    """The costs in the folder; none if no policy was fitted.

    Raises:
        UsageError: the file is damaged.
    """
    path = folder / FILE
    return _read(path, _COSTS, "delete it, then continue with --resume") if path.exists() else {}


def _read(path: Path, kind: TypeAdapter[_T], cure: str) -> _T:
    try:
        return kind.validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{path} does not hold the cost of fitting or training; {cure}") from error


def fit_cost_table(costs: Mapping[str, FitCost]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of a table."""
    rows = [
        [name, f"{cost.calls:,}", f"{cost.tokens:,}", "-" if cost.usd is None else dollars(cost.usd)]
        for name, cost in costs.items()
    ]
    return ["policy, to fit or train", "calls", "tokens", "cost"], rows
