"""The table of baselines as Markdown, for the documentation."""

from __future__ import annotations

import inspect
from collections import Counter

from wfdsl.evaluation.baselines.baseline import is_worker
from wfdsl.evaluation.policy_names import BASELINES
from wfdsl.settings import Option, options_of

_SEVERAL = 4  # baselines that have a parameter, from which on it is described once


def baseline_table() -> str:
    """What each baseline is, and what it leaves out of its paper."""
    rows = [
        f"| `{each.name}` | {(inspect.getdoc(each) or '').replace(chr(10), ' ')} | {each.calls} | {each.source} "
        f"| {each.simplifies} |"
        for each in BASELINES.values()
    ]
    head = ["| name | what it does | calls for each question | source | what it simplifies |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def parameter_table() -> str:
    """What may be set of each baseline; what several have is described once, first."""
    counts = Counter(_row(parameter) for each in BASELINES.values() for parameter in options_of(each))
    common = {row for row, count in counts.items() if count >= _SEVERAL}
    rows = [f"| several | {row} |" for row in counts if row in common]
    for each in BASELINES.values():
        rows += [f"| `{each.name}` | {row} |" for row in map(_row, options_of(each)) if row not in common]
    return "\n".join(["| baseline | parameter | default | meaning |", "|---|---|---|---|", *rows])


def _row(parameter: Option) -> str:
    choices = f" ({', '.join(parameter.choices)})" if parameter.choices else ""
    return f"`{parameter.name}` | {_default(parameter)} | {parameter.help}{choices}"


def _default(parameter: Option) -> str:
    if is_worker(parameter):
        return ("the pool's first worker", "its second", "its third")[parameter.default]
    return "none" if parameter.default is None else str(parameter.default)
