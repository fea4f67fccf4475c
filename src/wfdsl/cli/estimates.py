"""What a run would send and cost, printed before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from wfdsl.cli.output import print_json

if TYPE_CHECKING:  # start-up time
    from wfdsl.interpreter.worker_profile import RunEstimate


def show_estimate(found: RunEstimate, *, names: Sequence[str] | None, as_json: bool) -> None:
    """Print an estimate."""
    if as_json:
        print_json({**asdict(found), "calls": found.calls, "usd": found.usd}, indent=2)
    else:
        print(_as_text(found, names))


def _as_text(found: RunEstimate, names: Sequence[str] | None) -> str:
    lines = []
    for step in found.steps:
        title = names[step.step] if names else f"step {step.step}"
        lines.append(f"{title}: worker {step.worker} ({step.worker_name})")
        for message in step.messages:
            text = message["content"].replace("\n", "\n    ")
            lines.append(f"  {message['role']}: {text}")
    if found.pruned:
        lines.append(f"left out, since they cannot change the answer: {', '.join(map(str, found.pruned))}")
    ceiling = "not known: a worker has no prices or no max_tokens" if found.usd is None else f"${found.usd:.4f}"
    lines.append(f"calls: {found.calls}")
    lines.append(f"cost at most: {ceiling}")
    return "\n".join(lines)
