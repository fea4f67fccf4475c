"""The public names and where they are defined: for type checkers, and for `wfdsl.lazy`."""

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

__all__: list[str]
