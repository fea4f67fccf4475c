"""What policies have spent on learning, beside the cost of their answers: a file in an evaluation, and a table."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from wfdsl.errors import UsageError
from wfdsl.render.status import dollars
from wfdsl_rl.baselines.validation import Fitting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from wfdsl.conductor.policy import Policy

FILE: Final = "learning.json"


def learning_costs(policies: Mapping[str, Policy]) -> dict[str, Fitting]:
    """What those of the policies have spent that have learned something."""
    found = {name: getattr(policy, "fitting", None) for name, policy in policies.items()}
    return {name: fitting for name, fitting in found.items() if isinstance(fitting, Fitting)}


def keep_learning_costs(folder: Path, costs: Mapping[str, Fitting]) -> None:
    """Write costs to the folder, beside those that are there already; without any nothing is written.

    Raises:
        UsageError: what is there cannot be read.
    """
    if costs:
        every = {name: asdict(cost) for name, cost in {**read_learning_costs(folder), **costs}.items()}
        (folder / FILE).write_text(json.dumps(every, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def read_learning_costs(folder: Path) -> dict[str, Fitting]:
    """The costs in the folder; none if no policy had to learn.

    Raises:
        UsageError: the file is damaged.
    """
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        return {name: Fitting(**cost) for name, cost in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} holds no costs of learning ({error}): delete it, and go on with --resume") from error


def learning_table(costs: Mapping[str, Fitting]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of a table."""
    rows = [
        [name, f"{cost.calls:,}", f"{cost.tokens:,}", "-" if cost.usd is None else dollars(cost.usd)]
        for name, cost in costs.items()
    ]
    return ["policy, to learn", "calls", "tokens", "cost"], rows
