"""Publish the optimum of a preset, as `python -m tests.benchmarks optimum` has found it."""

from __future__ import annotations

import json
from typing import Any

from wfdsl_rl.gym.world.optimum import FILE, Found, Optimum, optimum


def publish(preset: str, found: Optimum) -> None:
    """Write the optimum of a preset into the file."""
    known = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}
    known[preset] = {
        "families": {family: _plain(lengths) for family, lengths in found.families.items()},
        "constants": _plain(found.constants),
    }
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", "utf-8")
    optimum.cache_clear()


def _plain(found: dict[int, Found]) -> dict[str, Any]:
    return {
        str(length): {"team": one.team, "accuracy": round(one.accuracy, 4), "error": round(one.error, 5)}
        for length, one in found.items()
    }
