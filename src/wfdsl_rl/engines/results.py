"""A scored completion as plain values, which JSON, a trainer's log or another process can hold."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

from wfdsl.protocols import Usage
from wfdsl_rl.scoring import Scored

Result: TypeAlias = dict[str, Any]


def result_of(scored: Scored) -> Result:
    """What a trainer reads of a scored completion.

    `score` is None if the outcome (`unjudged`, `failed`) says nothing about the completion. `tokens`, `cost_usd` (None:
    a price is not known) and `workers` (answers by worker) are of all executions; `replayed` counts the answers that
    came from the journal. `final` is the last step's subtask and response, which is `previous` of a revision's sample;
    None if nothing ran to an answer.
    """
    runs = scored.runs
    done = [step for run in runs for step in run.steps if step.status == "done"]
    used = sum((run.usage for run in runs), Usage())
    return {
        "score": scored.score,
        "outcome": scored.outcome,
        "steps": scored.steps,
        "cost_usd": scored.cost_usd,
        "tokens": {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens},
        "workers": dict(Counter(step.worker_name for step in done)),
        "problems": list(scored.problems),
        "replayed": sum(step.replayed for step in done),
        "final": None if scored.pair is None else list(scored.pair),
    }
