"""The table of baselines as Markdown, for the documentation."""

from __future__ import annotations

from wfdsl.evaluation.baselines.catalogue import BASELINES, Baseline
from wfdsl.evaluation.baselines.parameters import Parameter


def baseline_table() -> str:
    """What each baseline is, and what it leaves out of its paper."""
    rows = [
        f"| `{each.name}` | {each.about} | {each.calls} | {each.source} | {each.simplifies} |"
        for each in BASELINES.values()
    ]
    head = ["| name | what it does | calls for each question | source | what it simplifies |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def parameter_table() -> str:
    """What may be set of each baseline."""
    head = ["| baseline | parameter | default | meaning |", "|---|---|---|---|"]
    return "\n".join([*head, *(row for each in BASELINES.values() for row in _parameter_rows(each))])


def _parameter_rows(baseline: Baseline) -> list[str]:
    return [
        f"| `{baseline.name}` | `{each.name}` | {each.shown()} | {each.about}{_options(each)} |"
        for each in baseline.parameters
    ]


def _options(parameter: Parameter) -> str:
    return f" ({', '.join(parameter.options)})" if parameter.options else ""
