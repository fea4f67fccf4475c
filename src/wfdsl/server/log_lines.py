"""Lines of the log in JSON: requests without texts, and runs with what they cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from wfdsl.conductor.prompt import question_text
from wfdsl.interpreter.record import Run, as_unicode


def json_line(event: str, fields: Mapping[str, Any]) -> str:
    """One line: when, what, and the fields."""
    when = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": when, "event": event, **fields})


def run_record(model: str, run: Run, *, texts: bool) -> dict[str, Any]:
    """The fields of a run that is over; question and answer only if they are asked for."""
    key = run.settings.get("origin", {}).get("key")
    found = {
        "run": run.id,
        "model": model,
        **({"key": key} if key else {}),
        "status": run.status,
        "seconds": None if run.seconds is None else round(run.seconds, 3),
        "cost_usd": run.paid_usd,
        "input_tokens": run.usage.input_tokens,
        "output_tokens": run.usage.output_tokens,
    }
    if texts:
        found |= {"question": as_unicode(question_text(run.question)), "answer": run.answer}
    return found
