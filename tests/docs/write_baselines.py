"""The table of baselines as Markdown, for the documentation."""

from __future__ import annotations

from collections import Counter

from wfdsl.evaluation.baselines.catalogue import BASELINES
from wfdsl.evaluation.baselines.parameters import Parameter

_SEVERAL = 4  # baselines that have a parameter, from which on it is described once


def baseline_table() -> str:
    """What each baseline is, and what it leaves out of its paper."""
    rows = [
        f"| `{each.name}` | {each.about} | {each.calls} | {each.source} | {each.simplifies} |"
        for each in BASELINES.values()
    ]
    head = ["| name | what it does | calls for each question | source | what it simplifies |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def parameter_table() -> str:
    """What may be set of each baseline; what several have is described once, first."""
    counts = Counter(_row(parameter) for each in BASELINES.values() for parameter in each.parameters)
    common = {row for row, count in counts.items() if count >= _SEVERAL}
    rows = [f"| several | {row} |" for row in counts if row in common]
    for each in BASELINES.values():
        rows += [f"| `{each.name}` | {row} |" for row in map(_row, each.parameters) if row not in common]
    return "\n".join(["| baseline | parameter | default | meaning |", "|---|---|---|---|", *rows])


def _row(parameter: Parameter) -> str:
    options = f" ({', '.join(parameter.options)})" if parameter.options else ""
    return f"`{parameter.name}` | {parameter.shown()} | {parameter.about}{options}"
