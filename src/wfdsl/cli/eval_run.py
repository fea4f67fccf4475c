"""Run an evaluation from the command line: its folder, progress, summaries and exit code."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wfdsl.cli.display.consoles import stderr_console
from wfdsl.cli.display.live import stopped_by_signals
from wfdsl.cli.eval_reports import show, summary_of
from wfdsl.cli.options import experiment_of, parameters_of
from wfdsl.cli.output import FAILED, SPENT, Interrupted, print_json
from wfdsl.cli.task_options import tasks_of
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.fitting import Fitted
from wfdsl.evaluation.evaluate import estimate_policies, estimate_text, evaluate
from wfdsl.evaluation.manifest import is_simulated, kept_in, manifest_of, read_manifest, require_same
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.evaluation.report import Report, read_report, write_summaries
from wfdsl.evaluation.trials import Evaluation, Trial, read_trials, spent_on
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
        found = estimate_policies(evaluation)
        if args.json:
            print_json([asdict(each) for each in found], indent=2)
        else:
            print(estimate_text(found))
        return 0
    if args.engine == "ray":
        _require_no_money(evaluation, experiment)
        require_packages("--engine ray", ["ray"], "ray")
    if not args.no_plots:
        require_packages("the plot, which --no-plots leaves out,", ["matplotlib"], "eval")
    folder = Path(args.out or time.strftime("eval-%Y%m%d-%H%M%S"))
    again = f"wfdsl eval --resume {folder}"
    try:
        stopped = _evaluate(evaluation, folder, args, experiment, f"to continue: {again}")
    except (KeyboardInterrupt, asyncio.CancelledError):
        write_summaries(read_report(folder), plots=False)
        raise Interrupted(f"to continue: {again}") from None
    report = read_report(folder)
    write_summaries(report, plots=not args.no_plots)
    _print_report(report, args)
    if stopped:
        print(f"wfdsl eval: {stopped}", file=sys.stderr)
        print(f"to continue, with a larger budget: {again}", file=sys.stderr)
        return SPENT
    outcomes = Counter[str](trial.outcome for trial in report.trials)
    for outcome, what in (("unjudged", "answers could not be judged"), ("failed", "runs failed")):
        if outcomes[outcome]:
            first = next(trial for trial in report.trials if trial.outcome == outcome)
            print(f"wfdsl eval: {outcomes[outcome]} of {outcomes.total()} {what}", file=sys.stderr)
            print(f"the first: {first.policy} on {first.task}: {first.reason}", file=sys.stderr)
    if outcomes["unjudged"] or outcomes["failed"]:
        print(f"to try them again: {again}", file=sys.stderr)
    return FAILED if outcomes["failed"] else 0


def _evaluate(evaluation: Evaluation, folder: Path, args: argparse.Namespace, experiment: Experiment, hint: str) -> str:
    """Evaluate what is left; why it stopped early, and empty if every trial has its result."""
    evaluation, manifest = _begun(evaluation, folder, args)
    on_ray, keeps_calls = args.engine == "ray", experiment.run.journal
    with ExitStack() as opened:
        write = opened.enter_context(kept_in(folder, evaluation.policies, manifest))
        settled = {key: trial for key, trial in read_trials(folder).items() if trial.judged}
        if on_ray and settled.keys() >= set(evaluation.trials()):
            return ""  # a cluster would be started for nothing
        show = opened.enter_context(_progress(evaluation, settled.values(), experiment.budget.usd, quiet=args.quiet))

        def keep(trial: Trial) -> None:
            write(trial)
            show(trial)

        async def here() -> str:
            with Journal() if keeps_calls else nullcontext() as journal:
                budget = _budget_tracker(evaluation, experiment, journal, settled.values())
                return await evaluate(
                    evaluation, keep=keep, done=settled, journal=journal, budget=budget, concurrency=args.parallel
                )

        if not on_ray:
            return asyncio.run(stopped_by_signals(here(), hint))
        from wfdsl.evaluation.ray_engine import cluster, evaluate_on_ray

        build = partial(evaluation_of, args, tasks=())  # on a node, from the same options
        how = {"nodes": args.nodes, "parallel": args.parallel, "journal": keeps_calls}
        with cluster(args.address):
            there = evaluate_on_ray(evaluation, build, keep=keep, done=settled, **how)
            asyncio.run(stopped_by_signals(there, hint))
        return ""


def _budget_tracker(
    evaluation: Evaluation, experiment: Experiment, journal: Journal | None, settled: Collection[Trial]
) -> BudgetTracker | None:
    """The budget with what earlier sessions have spent; None without one."""
    if experiment.budget == UNLIMITED:
        return None
    if journal is not None:
        return BudgetTracker(experiment.budget, spent_on(evaluation.id, journal.path))
    costs = [(trial.calls + trial.completions, trial.tokens, trial.paid_usd or 0.0) for trial in settled]
    return BudgetTracker(experiment.budget, BudgetUsage(*map(sum, zip(*costs, strict=True))))


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
    fitted = [name for name, policy in evaluation.policies.items() if isinstance(policy, Fitted)]
    if fitted:
        raise UsageError(
            f"{', '.join(fitted)}: fitted before the first question, which every node would pay for; evaluate it "
            "with --engine local"
        )


def _begun(evaluation: Evaluation, folder: Path, args: argparse.Namespace) -> tuple[Evaluation, dict[str, Any] | None]:
    """The manifest of a new evaluation; or the resumed one with its id.

    Raises:
        UsageError: the folder holds a different evaluation than the one that is to be resumed.
    """
    now = manifest_of(evaluation, task_sources=args.tasks, command=args.words)
    if not args.resume:
        return evaluation, now
    before = read_manifest(folder)
    require_same(before, now, folder)
    return replace(evaluation, id=before["id"]), None


def _print_report(report: Report, args: argparse.Namespace) -> None:
    show(summary_of([report], args), args, simulated=report.simulated)
    if not args.json:
        written = "results and tables" if args.no_plots else "results, tables and plot"
        print(f"{written} are in {report.folder}", file=sys.stderr)
    for policy, found in report.signatures().items():
        for what, warning in found.warnings.items():
            print(f"wfdsl eval: warning: {policy}: {what}: {warning}", file=sys.stderr)


def evaluation_of(
    args: argparse.Namespace, experiment: Experiment | None = None, *, tasks: Sequence[Task] | None = None
) -> Evaluation:
    """What the options describe; `tasks` are asked instead of theirs.

    Raises:
        UsageError: an option cannot be used, or there is nothing to evaluate.
        WorkflowError: a file holds no valid workflow.
    """
    experiment = experiment or experiment_of(args)
    pool, name = experiment.require_pool(), experiment.grading.judge
    policies = policies_of(args.policy, pool, config=experiment.conductor, params=parameters_of(args))
    seed = _SEED if experiment.run.seed is None else experiment.run.seed
    judge = None if name is None else pool.find(name)
    if name is not None and judge is None:
        raise UsageError(f"grading.judge: the pool has no worker {name}; `wfdsl pools show` lists them")
    return Evaluation(
        policies=policies,
        tasks=tasks_of(args) if tasks is None else tasks,
        pool=pool,
        repeats=args.repeats,
        seed=None if args.no_seed else seed,
        options=run_options(experiment.run, without=("concurrency", "seed")),
        judge=judge,
        sandbox_packages=experiment.grading.sandbox_packages,
    )


@contextmanager
def _progress(
    evaluation: Evaluation, settled: Collection[Trial], budget_usd: float | None, *, quiet: bool
) -> Iterator[Callable[[Trial], None]]:
    """Gives what counts a trial, and shows outcomes and cost on standard error.

    On a terminal they are in a bar, else a line comes with every twentieth of the trials.
    """
    total, simulated = len(evaluation.trials()), " (simulated)" if is_simulated(evaluation.pool) else ""
    limit = "" if budget_usd is None else f" of {dollars(budget_usd)}"
    outcomes, every = Counter[str](trial.outcome for trial in settled), max(total // _LINES, 1)
    usd = total_usd(trial.paid_usd for trial in settled)

    def text() -> str:
        shown = [f"{outcomes['right']:,} right", f"{outcomes['wrong']:,} wrong"]
        shown += [f"{outcomes[name]:,} {name}" for name in ("unjudged", "failed") if outcomes[name]]
        return f"{', '.join(shown)}, {'cost not known' if usd is None else dollars(usd)}{limit}{simulated}"

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[counts]}"))
    is_drawn = not quiet and sys.stderr.isatty()
    with Progress(*columns, console=stderr_console(), refresh_per_second=4, disable=not is_drawn) as bar:
        task = bar.add_task("", total=total, completed=outcomes.total(), counts=text())

        def show(trial: Trial) -> None:
            nonlocal usd
            outcomes[trial.outcome] += 1
            usd, done = total_usd([usd, trial.paid_usd]), outcomes.total()
            if is_drawn:
                bar.update(task, completed=done, counts=text())
            elif not quiet and (done % every == 0 or done == total):
                print(f"{done:,} of {total:,} runs: {text()}", file=sys.stderr, flush=True)

        yield show
