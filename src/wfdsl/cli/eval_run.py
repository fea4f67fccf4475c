"""Run an evaluation from the command line: its folder, progress, summaries and exit code."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wfdsl.cli.display.consoles import stderr_console
from wfdsl.cli.display.live import stopped_by_signals
from wfdsl.cli.eval_reports import print_summary, print_table
from wfdsl.cli.options import experiment_of, parameters_of
from wfdsl.cli.output import FAILED, SPENT, Interrupted, print_json
from wfdsl.cli.task_options import tasks_of
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.fitting import FittedPolicy
from wfdsl.evaluation.estimate import estimate_policies, estimate_text
from wfdsl.evaluation.evaluate import evaluate
from wfdsl.evaluation.fingerprints import is_simulated
from wfdsl.evaluation.fit_costs import fit_cost_table, fit_costs, write_fit_costs
from wfdsl.evaluation.judge import worker_named
from wfdsl.evaluation.manifest import begin_folder, manifest_of, read_manifest, require_same
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.evaluation.report import Report, read_report, require_matplotlib, write_summaries
from wfdsl.evaluation.trials import Evaluation, Trial, TrialKey, read_trials, results_in, spent_on
from wfdsl.experiment import Experiment, run_options
from wfdsl.installation import require_packages
from wfdsl.interpreter.budget import UNLIMITED, BudgetTracker, BudgetUsage
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import total_usd
from wfdsl.render.status import dollars
from wfdsl.tasks.task import Task

_SEED = 0
_LINES: Final = 20
"""Lines that an evaluation prints where there is no terminal."""


def execute(args: argparse.Namespace) -> int:
    """Evaluate, or say what would be asked; the exit code."""
    experiment = experiment_of(args)
    evaluation = evaluation_of(args, experiment)
    if args.dry_run:
        _print_estimate(evaluation, args)
        return 0
    if args.engine == "ray":
        _require_no_money(evaluation, experiment)
        require_packages("--engine ray", ["ray"], "ray")
    if not args.no_plots:
        require_matplotlib()
    folder = Path(args.out or time.strftime("eval-%Y%m%d-%H%M%S"))
    return _Session(_begun(evaluation, folder, args), folder, args, experiment).work()


class _Session:
    """One process's part of an evaluation."""

    def __init__(self, evaluation: Evaluation, folder: Path, args: argparse.Namespace, experiment: Experiment) -> None:
        self._evaluation = evaluation
        self._folder = folder
        self._args = args
        self._experiment = experiment

    def work(self) -> int:
        """Evaluate what is left, write the summaries and print them; the exit code."""
        settled = {key: trial for key, trial in read_trials(self._folder).items() if trial.judged}
        try:
            stopped = self._evaluate(settled)
        except (KeyboardInterrupt, asyncio.CancelledError):
            write_summaries(read_report(self._folder), plots=False)
            raise Interrupted(f"to continue: {self._again()}") from None
        report = read_report(self._folder)
        write_summaries(report, plots=not self._args.no_plots)
        _print_report(report, self._args)
        for policy, found in report.signatures().items():
            for what, warning in found.warnings.items():
                print(f"wfdsl eval: warning: {policy}: {what}: {warning}", file=sys.stderr)
        if stopped:
            print(f"wfdsl eval: {stopped}", file=sys.stderr)
            print(f"to continue, with a larger budget: {self._again()}", file=sys.stderr)
            return SPENT
        return self._code(report)

    def _evaluate(self, settled: Mapping[TrialKey, Trial]) -> str:
        if self._args.engine == "ray" and settled.keys() >= set(self._evaluation.trials()):
            return ""  # a cluster would be started for nothing
        counts = _Counts(settled.values(), budget_usd=self._experiment.budget.usd)
        with results_in(self._folder) as write, _progress(self._evaluation, counts, quiet=self._args.quiet) as show:

            def keep(trial: Trial) -> None:
                write(trial)
                counts.add(trial)
                show()

            if self._args.engine == "ray":
                return self._evaluate_on_ray(settled, keep)
            try:
                return asyncio.run(stopped_by_signals(self._trials(settled, keep), f"to continue: {self._again()}"))
            finally:
                write_fit_costs(self._folder, fit_costs(self._evaluation.policies))

    async def _trials(self, settled: Mapping[TrialKey, Trial], keep: Callable[[Trial], None]) -> str:
        with Journal() if self._experiment.run.journal else nullcontext() as journal:
            return await evaluate(
                self._evaluation,
                keep=keep,
                done=settled,
                journal=journal,
                budget=_budget_tracker(self._evaluation, self._experiment, journal, settled),
                concurrency=self._args.parallel,
            )

    def _evaluate_on_ray(self, settled: Mapping[TrialKey, Trial], keep: Callable[[Trial], None]) -> str:
        from wfdsl.evaluation.ray_engine import Plan, cluster, evaluate_on_ray

        plan = Plan(
            build=partial(_on_node, self._args),
            evaluation_id=self._evaluation.id,
            folder=str(Path.cwd()),
            parallel=self._args.parallel,
            journal=self._experiment.run.journal,
        )
        with cluster(self._args.address):
            work = evaluate_on_ray(self._evaluation, plan, keep=keep, done=settled, nodes=self._args.nodes)
            asyncio.run(stopped_by_signals(work, f"to continue: {self._again()}"))
        return ""

    def _again(self) -> str:
        return f"wfdsl eval --resume {self._folder}"

    def _code(self, report: Report) -> int:
        found = {}
        for outcome, what in (("unjudged", "answers could not be judged"), ("failed", "runs failed")):
            if trials := [trial for trial in report.trials if trial.outcome == outcome]:
                found[outcome] = trials
                print(f"wfdsl eval: {len(trials)} of {len(report.trials)} {what}", file=sys.stderr)
                print(f"the first: {trials[0].policy} on {trials[0].task}: {trials[0].reason}", file=sys.stderr)
        if found:
            print(f"to try them again: {self._again()}", file=sys.stderr)
        return FAILED if "failed" in found else 0


def _require_no_money(evaluation: Evaluation, experiment: Experiment) -> None:
    """Refuse what several nodes would each spend for themselves.

    Raises:
        UsageError: there is a budget, or a policy that is fitted first.
    """
    if experiment.budget != UNLIMITED:
        raise UsageError(
            "a budget holds on one machine, and the nodes of a cluster do not share it; leave it out, or evaluate with "
            "--engine local"
        )
    fitted = [name for name, policy in evaluation.policies.items() if isinstance(policy, FittedPolicy)]
    if fitted:
        raise UsageError(
            f"{', '.join(fitted)}: fitted before the first question, which every node would pay for; evaluate it "
            "with --engine local"
        )


def _on_node(args: argparse.Namespace) -> Evaluation:
    """The evaluation as a node of a cluster makes it from the same options; its tasks are sent to it."""
    return evaluation_of(args, experiment_of(args), tasks=())


def _budget_tracker(
    evaluation: Evaluation,
    experiment: Experiment,
    journal: Journal | None,
    settled: Mapping[TrialKey, Trial],
) -> BudgetTracker | None:
    """The budget with what earlier sessions have spent; None without one."""
    budget = experiment.budget
    if budget == UNLIMITED:
        return None
    if journal is not None:
        return BudgetTracker(budget, spent_on(evaluation.id, journal.path))
    costs = [(trial.calls + trial.completions, trial.tokens, trial.paid_usd or 0.0) for trial in settled.values()]
    return BudgetTracker(budget, BudgetUsage(*map(sum, zip(*costs, strict=True))))


def _begun(evaluation: Evaluation, folder: Path, args: argparse.Namespace) -> Evaluation:
    """Write the manifest of a new evaluation; or give the resumed one its id.

    Raises:
        UsageError: the folder holds an evaluation already, or with --resume a different one.
    """
    now = manifest_of(evaluation, task_sources=args.tasks, command=args.words)
    if args.resume:
        before = read_manifest(folder)
        require_same(before, now, folder)
        return replace(evaluation, id=before["id"])
    begin_folder(folder, now)
    return evaluation


def _print_estimate(evaluation: Evaluation, args: argparse.Namespace) -> None:
    found = estimate_policies(evaluation)
    if args.json:
        print_json([asdict(each) for each in found], indent=2)
    else:
        print(estimate_text(found))


def _print_report(report: Report, args: argparse.Namespace) -> None:
    summary = report.summary()
    if args.json:
        print_json(summary.to_dict(), indent=2)
        return
    print_summary(summary)
    if report.fit_costs:
        print()
        print_table(*fit_cost_table(report.fit_costs))
    written = "results and tables" if args.no_plots else "results, tables and plot"
    print(f"{written} are in {report.folder}", file=sys.stderr)


def evaluation_of(
    args: argparse.Namespace, experiment: Experiment, *, tasks: Sequence[Task] | None = None
) -> Evaluation:
    """What the options describe; `tasks` are asked instead of theirs.

    Raises:
        UsageError: an option cannot be used, or there is nothing to evaluate.
        WorkflowError: a file holds no valid workflow.
    """
    pool = experiment.require_pool()
    policies = policies_of(args.policy, pool, config=experiment.conductor, params=parameters_of(args))
    seed = _SEED if experiment.run.seed is None else experiment.run.seed
    return Evaluation(
        policies=policies,
        tasks=tasks_of(args) if tasks is None else tasks,
        pool=pool,
        repeats=args.repeats,
        seed=None if args.no_seed else seed,
        options=run_options(experiment.run, without=("concurrency", "seed")),
        judge=None if (judge := experiment.grading.judge) is None else worker_named(pool, judge),
        sandbox_packages=experiment.grading.sandbox_packages,
    )


class _Counts:
    """Outcomes and cost of the trials so far."""

    def __init__(self, trials: Iterable[Trial], *, budget_usd: float | None) -> None:
        self._outcomes: Counter[str] = Counter()
        self._usd: float | None = 0.0
        self._limit = "" if budget_usd is None else f" of {dollars(budget_usd)}"
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self._outcomes[trial.outcome] += 1
        self._usd = total_usd([self._usd, trial.paid_usd])

    @property
    def done(self) -> int:
        """How many there are."""
        return self._outcomes.total()

    def __str__(self) -> str:
        named = ("right", "wrong", "unjudged", "failed")
        shown = [f"{self._outcomes[name]:,} {name}" for name in named if self._outcomes[name] or name in named[:2]]
        cost = "cost not known" if self._usd is None else dollars(self._usd)
        return f"{', '.join(shown)}, {cost}{self._limit}"


@contextmanager
def _progress(evaluation: Evaluation, counts: _Counts, *, quiet: bool) -> Iterator[Callable[[], object]]:
    """Gives what shows the counts on standard error: in a bar on a terminal, else every twentieth of the trials."""
    total, simulated = len(evaluation.trials()), " (simulated)" if is_simulated(evaluation.pool) else ""
    every = max(total // _LINES, 1)

    def print_line() -> None:
        if counts.done % every == 0 or counts.done == total:
            print(f"{counts.done:,} of {total:,} runs: {counts}{simulated}", file=sys.stderr, flush=True)

    if quiet or not sys.stderr.isatty():
        yield (lambda: None) if quiet else print_line
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[counts]}"))
    with Progress(*columns, console=stderr_console(), refresh_per_second=4) as bar:
        shown = bar.add_task("", total=total, completed=counts.done, counts=f"{counts}{simulated}")
        yield lambda: bar.update(shown, completed=counts.done, counts=f"{counts}{simulated}")
