"""`--dry-run` of a workflow: the messages that would be sent, and the most that it may cost."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.experiment.tables import RunTable
    from wfdsl.interpreter.forecast import Forecast
    from wfdsl.language.workflow import Workflow
    from wfdsl.workers.pool import Pool


def print_forecast(
    workflow: Workflow, question: str, pool: Pool, run: RunTable, *, names: Sequence[str] | None, as_json: bool
) -> None:
    """Print what running a workflow would come to.

    Raises:
        UsageError: the workflow cannot run on this pool.
    """
    from wfdsl.interpreter.forecast import forecast
    from wfdsl.interpreter.runnable import require_runnable

    require_runnable(workflow, pool, run.max_depth)
    found = forecast(workflow, question, pool, question_for=run.question_for, run_dead_steps=run.run_dead_steps)
    if as_json:
        print(json.dumps({**asdict(found), "calls": found.calls, "usd": found.usd}, ensure_ascii=False, indent=2))
    else:
        print(_as_text(found, names))


def _as_text(found: Forecast, names: Sequence[str] | None) -> str:
    lines = []
    for step in found.steps:
        title = names[step.step] if names else f"step {step.step}"
        lines.append(f"{title}: worker {step.worker} ({step.worker_name})")
        for message in step.messages:
            text = message["content"].replace("\n", "\n    ")
            lines.append(f"  {message['role']}: {text}")
    if found.pruned:
        lines.append(f"left out, since they cannot change the answer: {', '.join(map(str, found.pruned))}")
    ceiling = "not known: a worker has no prices or no longest reply" if found.usd is None else f"${found.usd:.4f}"
    lines.append(f"calls: {found.calls}")
    lines.append(f"cost at most: {ceiling}")
    return "\n".join(lines)
