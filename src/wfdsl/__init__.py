"""wfdsl: the workflow language of LLM Conductors, its interpreter, tasks with gold answers, grading and evaluation.

The public names. Each is imported when it is first used, so that `import wfdsl` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wfdsl._version import __version__

if TYPE_CHECKING:
    from wfdsl.api import Checked as Checked
    from wfdsl.api import analyze as analyze
    from wfdsl.api import dumps as dumps
    from wfdsl.api import load as load
    from wfdsl.api import parse as parse
    from wfdsl.conductor.conductor import Conductor as Conductor
    from wfdsl.conductor.config import ConductorConfig as ConductorConfig
    from wfdsl.conductor.policy import Policy as Policy
    from wfdsl.conductor.policy import Solution as Solution
    from wfdsl.errors import JournalFailure as JournalFailure
    from wfdsl.errors import UsageError as UsageError
    from wfdsl.errors import WfdslError as WfdslError
    from wfdsl.evaluation.evaluate import evaluate as evaluate
    from wfdsl.evaluation.report import read_report as read_report
    from wfdsl.evaluation.report import summarise as summarise
    from wfdsl.evaluation.trials import Evaluation as Evaluation
    from wfdsl.evaluation.trials import Trial as Trial
    from wfdsl.evaluation.workflow_statistics import WorkflowStatistics as WorkflowStatistics
    from wfdsl.evaluation.workflow_statistics import statistics_of as statistics_of
    from wfdsl.experiment import Experiment as Experiment
    from wfdsl.experiment import read_experiment as read_experiment
    from wfdsl.grading.code import grade_program as grade_program
    from wfdsl.grading.extraction import final_answer as final_answer
    from wfdsl.grading.extraction import final_code as final_code
    from wfdsl.grading.grade import grade as grade
    from wfdsl.grading.grade import grade_sync as grade_sync
    from wfdsl.grading.sandbox.isolation import SandboxLimits as SandboxLimits
    from wfdsl.grading.sandbox.isolation import SandboxMissing as SandboxMissing
    from wfdsl.grading.sandbox.sandbox import Sandbox as Sandbox
    from wfdsl.grading.verdict import Verdict as Verdict
    from wfdsl.graph import to_dag as to_dag
    from wfdsl.interpreter.budget import Budget as Budget
    from wfdsl.interpreter.config import RunConfig as RunConfig
    from wfdsl.interpreter.events import BudgetCharged as BudgetCharged
    from wfdsl.interpreter.events import CompletionFinished as CompletionFinished
    from wfdsl.interpreter.events import CompletionStarted as CompletionStarted
    from wfdsl.interpreter.events import Delta as Delta
    from wfdsl.interpreter.events import Event as Event
    from wfdsl.interpreter.events import FellBack as FellBack
    from wfdsl.interpreter.events import Listener as Listener
    from wfdsl.interpreter.events import Retried as Retried
    from wfdsl.interpreter.events import RunFinished as RunFinished
    from wfdsl.interpreter.events import RunStarted as RunStarted
    from wfdsl.interpreter.events import StepFinished as StepFinished
    from wfdsl.interpreter.events import StepStarted as StepStarted
    from wfdsl.interpreter.journal import Journal as Journal
    from wfdsl.interpreter.record import BudgetExhausted as BudgetExhausted
    from wfdsl.interpreter.record import Run as Run
    from wfdsl.interpreter.record import RunFailed as RunFailed
    from wfdsl.interpreter.record import RunSuspended as RunSuspended
    from wfdsl.interpreter.record import StepRecord as StepRecord
    from wfdsl.interpreter.redoing import redo as redo
    from wfdsl.interpreter.running import RunOptions as RunOptions
    from wfdsl.interpreter.running import resume as resume
    from wfdsl.interpreter.running import run as run
    from wfdsl.interpreter.running import run_sync as run_sync
    from wfdsl.interpreter.running import stream as stream
    from wfdsl.interpreter.tools import Tools as Tools
    from wfdsl.language.check import CheckConfig as CheckConfig
    from wfdsl.language.diagnostics import Diagnostic as Diagnostic
    from wfdsl.language.diagnostics import WorkflowError as WorkflowError
    from wfdsl.language.source import Source as Source
    from wfdsl.language.source import Span as Span
    from wfdsl.language.workflow import Step as Step
    from wfdsl.language.workflow import Workflow as Workflow
    from wfdsl.protocols import Call as Call
    from wfdsl.protocols import Message as Message
    from wfdsl.protocols import Reply as Reply
    from wfdsl.protocols import ToolCall as ToolCall
    from wfdsl.protocols import Usage as Usage
    from wfdsl.protocols import Worker as Worker
    from wfdsl.protocols import WorkerFailure as WorkerFailure
    from wfdsl.render.pictures import to_html as to_html
    from wfdsl.render.pictures import to_mermaid as to_mermaid
    from wfdsl.render.pictures import to_pdf as to_pdf
    from wfdsl.render.pictures import to_png as to_png
    from wfdsl.render.pictures import to_svg as to_svg
    from wfdsl.render.pictures import to_terminal as to_terminal
    from wfdsl.tasks.loading import load_tasks as load_tasks
    from wfdsl.tasks.task import CodeTests as CodeTests
    from wfdsl.tasks.task import Task as Task
    from wfdsl.tasks.task import save_tasks as save_tasks
    from wfdsl.workers.entry import WorkerEntry as WorkerEntry
    from wfdsl.workers.pool import Pool as Pool

_NAMES = {
    "api": "Checked analyze dumps load parse",
    "conductor.conductor": "Conductor",
    "conductor.config": "ConductorConfig",
    "conductor.policy": "Policy Solution",
    "errors": "JournalFailure UsageError WfdslError",
    "evaluation.evaluate": "evaluate",
    "evaluation.report": "read_report summarise",
    "evaluation.trials": "Evaluation Trial",
    "evaluation.workflow_statistics": "WorkflowStatistics statistics_of",
    "experiment": "Experiment read_experiment",
    "grading.code": "grade_program",
    "grading.extraction": "final_answer final_code",
    "grading.grade": "grade grade_sync",
    "grading.sandbox.isolation": "SandboxLimits SandboxMissing",
    "grading.sandbox.sandbox": "Sandbox",
    "grading.verdict": "Verdict",
    "graph": "to_dag",
    "interpreter.budget": "Budget",
    "interpreter.config": "RunConfig",
    "interpreter.events": "BudgetCharged CompletionFinished CompletionStarted Delta Event FellBack Listener Retried "
    "RunFinished RunStarted StepFinished StepStarted",
    "interpreter.journal": "Journal",
    "interpreter.record": "BudgetExhausted Run RunFailed RunSuspended StepRecord",
    "interpreter.redoing": "redo",
    "interpreter.running": "RunOptions resume run run_sync stream",
    "interpreter.tools": "Tools",
    "language.check": "CheckConfig",
    "language.diagnostics": "Diagnostic WorkflowError",
    "language.source": "Source Span",
    "language.workflow": "Step Workflow",
    "protocols": "Call Message Reply ToolCall Usage Worker WorkerFailure",
    "render.pictures": "to_html to_mermaid to_pdf to_png to_svg to_terminal",
    "tasks.loading": "load_tasks",
    "tasks.task": "CodeTests Task save_tasks",
    "workers.entry": "WorkerEntry",
    "workers.pool": "Pool",
}
"""The public names of each module."""
_HOMES = dict(sorted((name, module) for module, names in _NAMES.items() for name in names.split()))

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604  (names of this very table)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'wfdsl' has no attribute {name!r}")
    value = getattr(import_module(f"wfdsl.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
