"""The gym's best workflows as Markdown, for the documentation; `wfdsl_rl.gym.world.optimum` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wfdsl_rl.gym.world.families import domain_of
from wfdsl_rl.gym.world.optimum import MAX_STEPS, Optimum, optimum

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl_rl.gym.world.optimum import Found

WANTS: Final[Mapping[str, tuple[str, str]]] = {
    "sums": ("easy", "one step"),
    "largest": ("easy", "one step"),
    "chain": ("depth", "parts handed over one after the other"),
    "relay": ("depth", "parts handed over one after the other"),
    "long-run": ("horizon", "one improvement after the other, by different workers"),
    "list-code": ("horizon", "a plan first"),
    "basket": ("breadth", "each part by the worker that is best at it"),
    "pair": ("breadth", "one part apart from the rest"),
    "tally": ("parallel attempts", "attempts that do not see each other, and a comparison"),
    "number-code": ("parallel attempts", "attempts that do not see each other, and a comparison"),
    "decoy": ("robustness", "checks by unrelated workers"),
    "string-code": ("robustness", "checks by unrelated workers"),
}
"""Of each family of `gym/axes`, its axis and what pays there."""
_LENGTHS: Final = range(1, MAX_STEPS + 1)


def families() -> str:
    """The families of `gym/axes`, and the best accuracy for each number of steps."""
    found = optimum("gym/axes").families
    rows = [
        f"| {axis} | `{family}` | {domain_of(family)} | {wants} | {_shares(found[family])} |"
        for family, (axis, wants) in WANTS.items()
    ]
    head = f"| axis | family | kind | what pays | {' | '.join(f'{n} steps' if n > 1 else '1 step' for n in _LENGTHS)} |"
    return "\n".join([head, f"|---|---|---|---|{'---:|' * MAX_STEPS}", *rows, f"| | all | | | {_means(found)} |"])


def worth() -> str:
    """What choosing a workflow is worth on the published presets."""
    rows = []
    for name in ("gym/axes", "gym/paper7"):
        known = optimum(name)
        best_step = known.mean({family: found[1].accuracy for family, found in known.families.items()})
        shares = (known.constants[1].accuracy, best_step, known.constant().accuracy, known.accuracy())
        rows.append(f"| `{name}` | {' | '.join(f'{100 * share:.1f}' for share in shares)} |")
    head = ("best worker", "best worker for each family", "best workflow for all questions", "and for each family")
    return "\n".join([f"| | {' | '.join(head)} |", f"|---|{'---:|' * len(head)}", *rows])


def _shares(found: Mapping[int, Found]) -> str:
    return " | ".join(f"{100 * found[length].accuracy:.1f}" for length in _LENGTHS)


def _means(families: Mapping[str, Mapping[int, Found]]) -> str:
    means = [Optimum.mean({name: found[n].accuracy for name, found in families.items()}) for n in _LENGTHS]
    return " | ".join(f"{100 * mean:.1f}" for mean in means)
