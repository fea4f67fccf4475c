"""For your own tests: strategies that draw workflows and texts, workers that need no model, and a simulator
of refusals, failures, full disks and kills.

    from hypothesis import given
    from wfdsl.testing import completions

    @given(completions())
    def test_my_tool_reads_what_the_parser_reads(written): ...

The strategies need hypothesis (`pip install hypothesis`); `ScriptedWorker`, `check_worker` and `simulate` do not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wfdsl.testing.completion_writer import Written as Written
    from wfdsl.testing.simulation import Violation as Violation
    from wfdsl.testing.simulation import simulate as simulate
    from wfdsl.testing.strategies import completions as completions
    from wfdsl.testing.strategies import near_misses as near_misses
    from wfdsl.testing.strategies import repairable_completions as repairable_completions
    from wfdsl.testing.strategies import workflow_files as workflow_files
    from wfdsl.testing.strategies import workflows as workflows
    from wfdsl.workers.conformance import check_worker as check_worker
    from wfdsl.workers.scripted import ScriptedWorker as ScriptedWorker

_HOMES = {
    "ScriptedWorker": "wfdsl.workers.scripted",
    "Violation": "wfdsl.testing.simulation",
    "Written": "wfdsl.testing.completion_writer",
    "check_worker": "wfdsl.workers.conformance",
    "completions": "wfdsl.testing.strategies",
    "near_misses": "wfdsl.testing.strategies",
    "repairable_completions": "wfdsl.testing.strategies",
    "simulate": "wfdsl.testing.simulation",
    "workflow_files": "wfdsl.testing.strategies",
    "workflows": "wfdsl.testing.strategies",
}

__all__ = [*_HOMES]  # noqa: PLE0604  (names of this very table)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'wfdsl.testing' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
