"""`wfdsl-eval` itself: an evaluation, its folder, and what is printed at the end."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl.cli.output import FAILED, SPENT
from wfdsl.errors import UsageError
from wfdsl_rl.cli.eval_options import completed, configure, evaluation_of, read_options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from wfdsl.experiment import Experiment
    from wfdsl.interpreter.budget import BudgetTracker
    from wfdsl.interpreter.journal import Journal
    from wfdsl_rl.evaluation.cell import Cell, CellKey
    from wfdsl_rl.evaluation.evaluating import Evaluation
    from wfdsl_rl.evaluation.report import Report
    from wfdsl_rl.evaluation.results import Results

__all__ = ["configure", "execute"]


def execute(arguments: Sequence[str], parse: Callable[[Sequence[str]], argparse.Namespace]) -> int:
    """Evaluate, or say what would be asked; the exit code."""
    args = completed(list(arguments), parse)
    experiment = read_options(args)
    evaluation = evaluation_of(args, experiment)
    if args.dry_run:
        _print_outlook(evaluation, args)
        return 0
    folder = Path(args.out or time.strftime("eval-%Y%m%d-%H%M%S"))
    return _Session(_begun(evaluation, folder, args, list(arguments)), folder, args, experiment).work()


class _Session:
    """One process's part of an evaluation."""

    def __init__(self, evaluation: Evaluation, folder: Path, args: argparse.Namespace, experiment: Experiment) -> None:
        from wfdsl_rl.evaluation.report import RESULTS

        self._evaluation = evaluation
        self._folder = folder
        self._results = folder / RESULTS
        self._args = args
        self._experiment = experiment

    def work(self) -> int:
        """Evaluate what is left, write the summaries and print them; the exit code."""
        from wfdsl_rl.evaluation.report import read_report, write_summaries
        from wfdsl_rl.evaluation.results import read_cells

        settled = {key: cell for key, cell in read_cells(self._results).items() if cell.judged}
        try:
            stopped = self._evaluate(settled)
        except KeyboardInterrupt:
            write_summaries(read_report(self._folder), plots=False)
            print(f"`{self._again()}` goes on from here", file=sys.stderr)
            raise
        report = read_report(self._folder)
        write_summaries(report, plots=not self._args.no_plots)
        _print_report(report, self._args)
        if stopped:
            print(f"wfdsl-eval: {stopped}", file=sys.stderr)
            print(f"`{self._again()}` with a larger budget goes on from here", file=sys.stderr)
            return SPENT
        return self._code(report)

    def _evaluate(self, settled: Mapping[CellKey, Cell]) -> str:
        from wfdsl.interpreter.journal import Journal
        from wfdsl_rl.baselines.learning_costs import keep_learning_costs, learning_costs
        from wfdsl_rl.evaluation.results import Results

        store = Journal() if self._experiment.run.journal else nullcontext()
        with store as journal, Results(self._results) as results:
            try:
                return asyncio.run(_stopped_by_sigterm(self._cells(settled, journal, results)))
            finally:
                keep_learning_costs(self._folder, learning_costs(self._evaluation.policies))

    async def _cells(self, settled: Mapping[CellKey, Cell], journal: Journal | None, results: Results) -> str:
        from wfdsl_rl.cli.eval_progress import Counts, progress_on_stderr
        from wfdsl_rl.evaluation.evaluating import evaluate
        from wfdsl_rl.evaluation.manifest import is_simulated

        total = len(self._evaluation.cells())
        simulated, budget_usd = is_simulated(self._evaluation.pool), self._experiment.budget.usd
        counts = Counts(settled.values(), budget_usd=budget_usd, simulated=simulated)
        account = _account(self._evaluation, self._experiment, journal, settled)
        with progress_on_stderr(total, counts) as progress:

            def keep(cell: Cell) -> None:
                results.keep(cell)
                progress.add(cell)

            return await evaluate(
                self._evaluation,
                keep=keep,
                done=settled.keys(),
                journal=journal,
                budget=account,
                concurrency=self._args.concurrency,
            )

    def _again(self) -> str:
        return f"wfdsl-eval --resume --out {self._folder}"

    def _code(self, report: Report) -> int:
        failed = [cell for cell in report.cells if cell.outcome == "failed"]
        unjudged = [cell for cell in report.cells if cell.outcome == "unjudged"]
        for cells, what in ((unjudged, "answers could not be judged"), (failed, "runs failed")):
            if cells:
                print(f"wfdsl-eval: {len(cells)} of {len(report.cells)} {what}", file=sys.stderr)
                print(f"the first: {cells[0].policy} on {cells[0].task}: {cells[0].reason}", file=sys.stderr)
        if failed or unjudged:
            print(f"`{self._again()}` tries them again", file=sys.stderr)
        return FAILED if failed else 0


async def _stopped_by_sigterm(work: Coroutine[Any, Any, str]) -> str:
    """Let SIGTERM, which a system sends that shuts down, end an evaluation as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None  # asyncio.run has made it
    # Windows has no such signal, and only the main thread may listen to one.
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _account(
    evaluation: Evaluation, experiment: Experiment, journal: Journal | None, settled: Mapping[CellKey, Cell]
) -> BudgetTracker | None:
    """The account of the budget, with what earlier sessions have spent; None without a budget."""
    from wfdsl.interpreter.budget import UNLIMITED, BudgetTracker, BudgetUsage
    from wfdsl_rl.evaluation.naming import spent_on

    budget = experiment.budget
    if budget == UNLIMITED:
        return None
    if journal is not None:
        return BudgetTracker(budget, spent_on(evaluation.id, journal.path))
    cells = settled.values()
    calls, tokens = sum(cell.calls + cell.completions for cell in cells), sum(cell.tokens for cell in cells)
    return BudgetTracker(budget, BudgetUsage(calls, tokens, sum(cell.paid_usd or 0.0 for cell in cells)))


def _begun(evaluation: Evaluation, folder: Path, args: argparse.Namespace, command: list[str]) -> Evaluation:
    """Write the manifest of a new evaluation; or give the one that is gone on with its id.

    Raises:
        UsageError: the folder holds an evaluation already, or another one than is to be gone on with.
    """
    from wfdsl_rl.evaluation.manifest import manifest_of, read_manifest, require_same, write_manifest
    from wfdsl_rl.evaluation.report import RESULTS
    from wfdsl_rl.evaluation.results import read_cells

    now = manifest_of(evaluation, task_sources=args.tasks, command=command)
    if args.resume:
        before = read_manifest(folder)
        require_same(before, now, folder)
        return replace(evaluation, id=before["id"])
    if read_cells(folder / RESULTS):
        raise UsageError(f"{folder} holds an evaluation already: go on with it by --resume, or give another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_manifest(folder, now)
    except OSError as error:
        raise UsageError(f"--out {folder}: cannot be written: {error.strerror}") from error
    return evaluation


def _print_outlook(evaluation: Evaluation, args: argparse.Namespace) -> None:
    from wfdsl_rl.evaluation.outlook import outlook_on, outlook_text

    found = outlook_on(evaluation)
    if args.format == "json":
        print(json.dumps([each.to_dict() for each in found], ensure_ascii=False, indent=2))
    else:
        print(outlook_text(found))


def _print_report(report: Report, args: argparse.Namespace) -> None:
    from wfdsl_rl.baselines.learning_costs import learning_table, read_learning_costs
    from wfdsl_rl.cli.eval_printing import print_summary, print_table

    summary = report.summary()
    if args.format == "json":
        print(json.dumps(summary.to_dict(), ensure_ascii=False, indent=2))
        return
    print_summary(summary)
    if costs := read_learning_costs(report.folder):
        print()
        print_table(*learning_table(costs))
    written = "results and tables" if args.no_plots else "results, tables and plots"
    print(f"{written} are in {report.folder}", file=sys.stderr)
