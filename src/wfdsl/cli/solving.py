"""Who answers the questions of `wfdsl solve`, and `--from FILE --out FILE`: many questions, several at a time.

Answers are written in the order in which they come. A line that has an answer is not asked again, so the same command
continues where it stopped. What a question had paid for before is in the journal, under a run id that is made of the
file, the question and who solves it.

Only `solve` imports this module, and only when it executes: Conductors take start-up time.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TextIO, TypeAlias

from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from wfdsl.api import Checked, analyze_path
from wfdsl.cli.display.consoles import stderr_console
from wfdsl.cli.display.live import listener_for, new_run_options, stopped_by_signals
from wfdsl.cli.display.streams import OutputFailed
from wfdsl.cli.inputs import names_of, require_workflow
from wfdsl.cli.options import experiment_of, given, parameters_of, require_no_parameters
from wfdsl.cli.output import FAILED, SMALL_MODEL, SPENT, Interrupted, advised
from wfdsl.cli.question_files import GIVEN_UP, Asked, append_line, columns_of, open_answers, read_before, read_questions
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import LOCAL
from wfdsl.conductor.estimate import SolveEstimate, estimate_solve
from wfdsl.conductor.named import conductor_name, named_conductor, own_policy
from wfdsl.conductor.policy import Policy, Solution, WorkflowPolicy
from wfdsl.conductor.round_log import gave_up
from wfdsl.errors import JournalFailure, UsageError, WfdslError
from wfdsl.experiment import Experiment, found_anywhere
from wfdsl.interpreter.budget import UNLIMITED, BudgetTracker
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.record import BudgetExhausted, RunFailed, as_unicode, workflow_to_list
from wfdsl.interpreter.running import RunOptions, checked_question
from wfdsl.language.workflow import Workflow
from wfdsl.own_code import file_of
from wfdsl.render.status import dollars
from wfdsl.render.text import counted
from wfdsl.workers.pool import Pool

_LINES = 20  # how many lines report progress where there is no terminal; our choice


_AGAIN = "continue with: the same command"


class FixedWorkflow(NamedTuple):
    """A `.wf` file instead of a Conductor: it is run on every question as it is."""

    checked: Checked

    @property
    def workflow(self) -> Workflow:
        """The workflow."""
        assert self.checked.workflow is not None, "only what holds a workflow is made one"
        return self.checked.workflow


class OwnPolicy(NamedTuple):
    """A policy of one's own instead of a Conductor."""

    name: str
    policy: Policy


Solver: TypeAlias = Conductor | FixedWorkflow | OwnPolicy


@dataclass(frozen=True, slots=True)
class Solving:
    """Everything but the question."""

    solver: Solver
    pool: Pool
    origin: dict[str, str]
    """Where workflow or Conductor, and the pool, were found, for resuming a run."""
    experiment: Experiment

    @property
    def max_rounds(self) -> int:
        """The most rounds after round 0."""
        return self.solver.settings.max_rounds if isinstance(self.solver, Conductor) else 0

    async def solve(self, question: Question, options: RunOptions) -> Solution:
        """The solution of a question.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        if isinstance(self.solver, Conductor):
            return await self.solver.solve(question, self.pool, **options)
        if isinstance(self.solver, OwnPolicy):
            return await self.solver.policy.solve(question, self.pool, **options)
        named: RunOptions = {**options, "names": names_of(self.solver.checked)}
        return await WorkflowPolicy(self.solver.workflow).solve(question, self.pool, **named)


def solving_of(args: argparse.Namespace) -> Solving:
    """What options and configuration describe.

    Raises:
        UsageError: something cannot be used.
        WorkflowError: a workflow that they name is not valid.
    """
    experiment = experiment_of(args)
    pool, pool_name = experiment.with_pool()
    name = conductor_name(experiment.conductor, pool)
    solver = _solver(name, experiment, pool, args)
    fixed = isinstance(solver, FixedWorkflow)
    found = {"file": str(Path(name).absolute())} if fixed else {"solve": found_anywhere(name)}
    origin = found | ({} if pool_name is None else {"pool": pool_name})
    return Solving(solver, pool, origin, experiment)


def remark_on_choice(solving: Solving) -> str:
    """Who conducts, where no one has been named; what the small model is, where nothing else is there."""
    name = solving.origin.get("solve")
    if name is None or solving.experiment.conductor.model or solving.pool.settings.conductor:
        return ""
    if name != LOCAL:
        return f"{name}, the first worker of the pool, writes the workflow; --conductor names another model"
    if solving.experiment.pool is not None:
        return ""
    return SMALL_MODEL.format("plans and answers")


def estimate_of(solving: Solving, conductor: Conductor, question: Question) -> SolveEstimate:
    """What a Conductor would be sent first, and what the question may take."""
    return estimate_solve(conductor, question, solving.pool, question_for=solving.experiment.run.question_for)


def _solver(name: str, experiment: Experiment, pool: Pool, args: argparse.Namespace) -> Solver:
    own = file_of(name) is not None
    if not own and not name.endswith(".wf"):
        require_no_parameters(args, "a Conductor has no parameters")
        return named_conductor(experiment.conductor, pool)
    idle = [option for key, option in given(args, "conductor").items() if key != "model"]
    if idle:
        raise UsageError(f"{name} is run as it is, without a Conductor: leave out {idle[0]}")
    if own:
        require_no_parameters(args, "a policy of your own has no parameters")
        if args.dry_run:
            raise UsageError(f"{name} cannot say what it would ask before it runs: leave out --dry-run")
        return OwnPolicy(name, own_policy(name))
    return FixedWorkflow(require_workflow(analyze_path(name, pool=pool, params=parameters_of(args))))


def solve_lines(solving: Solving, args: argparse.Namespace) -> int:
    """Answer every question that has no answer yet; 3 if one got none, 4 if the budget is spent."""
    _require_two_files(args.source, args.out)
    everything = read_questions(args.source, columns_of(args.map))
    if not everything:
        print(f"{args.source} holds no question", file=sys.stderr)
    before = read_before(args.out)
    left = [asked for asked in everything if before.answered.get(str(asked.id)) != asked.question]
    if len(left) < len(everything):
        print(f"{len(everything) - len(left)} of {len(everything)} are answered already", file=sys.stderr)
    if args.dry_run:
        _print_dry_run(solving, left, as_json=args.json)
        return 0
    batch = _Batch(solving, args, before.given_up)
    try:
        showing = progress_on_stderr(len(left), quiet=args.quiet)
        with open_answers(args.out) as out, showing as progress:
            asyncio.run(stopped_by_signals(batch.work(left, out, progress), _AGAIN))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise Interrupted(_AGAIN) from None
    except JournalFailure as error:
        raise JournalFailure(f"{error}; or run without a journal, with --no-journal") from error
    return batch.code()


def _require_two_files(source: str, target: str) -> None:
    try:
        same = Path(target).exists() and Path(source).exists() and Path(source).samefile(target)
    except (OSError, ValueError):
        return  # reading them says what is wrong
    if same:
        raise UsageError(f"--out {target} also holds the questions: name another file for the answers")


def _print_dry_run(solving: Solving, left: list[Asked], *, as_json: bool) -> None:
    if not as_json:
        print(f"{counted(len(left), 'question')} would be asked")
        return
    for asked in left:
        row: dict[str, Any] = {"id": asked.id, "question": asked.question}
        solver = solving.solver
        if isinstance(solver, Conductor):
            row["prompt"] = solver.settings.prompt.fingerprint
            row["messages"] = list(estimate_of(solving, solver, asked.question).messages)
        print(_line(row))


class _Batch:
    """The questions of one command, and their results."""

    def __init__(self, solving: Solving, args: argparse.Namespace, given_up: Counter[str]) -> None:
        self._solving = solving
        self._args = args
        self._run = solving.experiment.run
        self._identity = _identity(solving.solver)
        self._given_up = given_up
        self._failures = 0
        self._spent = ""

    def code(self) -> int:
        """The exit code."""
        if self._spent:
            print(f"wfdsl solve: {self._spent}", file=sys.stderr)
            return SPENT
        return FAILED if self._failures else 0

    async def work(self, asked: list[Asked], out: FileIO, progress: Progress) -> None:
        """Answer them.

        Raises:
            UsageError: the pool or the Conductor cannot be used, or the answers cannot be written.
        """
        waiting, solver = iter(asked), self._solving.solver
        model = solver.open() if isinstance(solver, Conductor) else nullcontext()
        refused: list[Exception] = []
        with Journal() if self._run.journal else nullcontext() as journal:
            options = _shared(new_run_options(self._solving.experiment, origin=self._solving.origin), journal)
            async with self._solving.pool.open(), model:
                try:
                    async with asyncio.TaskGroup() as group:
                        for _ in range(min(self._run.parallel, len(asked))):
                            group.create_task(self._take(waiting, options, out, progress))
                except* (WfdslError, OutputFailed) as several:
                    refused += _leaves(several)
        if refused:
            raise refused[0]

    async def _take(self, waiting: Iterator[Asked], options: RunOptions, out: FileIO, progress: Progress) -> None:
        for asked in waiting:
            if self._spent:
                return
            try:
                checked_question(asked.question)
            except UsageError as error:
                self._failures += 1
                self._write(out, asked, {"answer": None, "error": str(error)})
                progress.failed(asked.id, str(error), 0.0)
                continue
            own: RunOptions = {**options, "run_id": self._run_id(asked)}
            own["on_event"] = listener_for(None, otel=self._args.otel, origin=self._solving.origin)
            try:
                solution = await self._solving.solve(asked.question, own)
            except BudgetExhausted as error:
                self._spent = advised(error, "the same command")
            except RunFailed as error:
                self._failures += 1
                why = advised(error, "the same command")
                given_up = {GIVEN_UP: True} if gave_up(error.run) else {}
                self._write(out, asked, {"answer": None, "error": why, **given_up, "run": error.run.to_dict()})
                progress.failed(asked.id, why, error.run.paid_usd)
            else:
                self._write(out, asked, solution.to_dict())
                progress.answered(solution.run.paid_usd)

    def _run_id(self, asked: Asked) -> str:
        parts: list[Any] = [str(Path(self._args.out).resolve()), str(asked.id), asked.question, self._identity]
        if again := self._given_up[str(asked.id)]:
            parts.append(again)
        return f"solve-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"

    def _write(self, out: FileIO, asked: Asked, result: dict[str, Any]) -> None:
        line = _line({"id": asked.id, "question": asked.question, **result})
        try:
            append_line(out, line)
        except OSError as error:
            kept = "" if not self._run.journal else ", and what was paid for is in the journal"
            raise UsageError(f"{self._args.out}: cannot be written: {error.strerror}{kept}") from error
        if self._args.json:
            print(line, flush=True)


def _shared(options: RunOptions, journal: Any) -> RunOptions:
    """The options of each question, where the budget and the limit of calls in flight hold for all together."""
    budget, most = options["budget"], options.get("concurrency")
    return {
        **options,
        "journal": journal,
        "budget": None if budget == UNLIMITED else BudgetTracker(budget),
        "concurrency": None,
        "limiter": None if most is None else ConcurrencyLimiter(most),
    }


def _identity(solver: Solver) -> list[Any]:
    """What the run id of a question is made of, apart from the question."""
    if isinstance(solver, FixedWorkflow):
        return [workflow_to_list(solver.workflow)]
    if isinstance(solver, OwnPolicy):
        return [found_anywhere(solver.name)]
    return [solver.entry.model, solver.settings.prompt.hash]


def _leaves(group: ExceptionGroup[WfdslError | OutputFailed]) -> list[Exception]:
    found: list[Exception] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, ExceptionGroup) else [error]
    return found


def _line(row: dict[str, Any]) -> str:
    """A line of JSON; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    return as_unicode(json.dumps(row, ensure_ascii=False))


class Progress(Protocol):
    """Counts questions as they are answered."""

    def answered(self, usd: float | None) -> None:
        """A question has an answer; `usd` is what it cost, None if that is not known."""
        ...

    def failed(self, name: str | float, why: str, usd: float | None) -> None:
        """A question got no answer."""
        ...


@contextmanager
def progress_on_stderr(total: int, *, quiet: bool) -> Iterator[Progress]:
    """Show progress until the end of the block; `quiet` leaves only the questions without an answer."""
    if quiet or not sys.stderr.isatty():
        yield Lines(total, sys.stderr, lines=0 if quiet else _LINES)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    # Standard output may be a pipe with the answers: nothing of it is to be redrawn.
    with Bar(*columns, console=stderr_console(), redirect_stdout=False) as bar:
        yield OnTerminal(total, bar)


class _Tally:
    """The number of questions answered, failed and paid for so far."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.failures = 0
        self.done = 0
        self.usd: float | None = 0.0

    def add(self, usd: float | None) -> None:
        """Count a question."""
        self.done += 1
        self.usd = None if self.usd is None or usd is None else self.usd + usd

    def remarks(self) -> str:
        """Failures and costs, as far as there are any."""
        parts = [f"{self.failures} without an answer"] if self.failures else []
        parts += [dollars(self.usd)] if self.usd else []
        return ", ".join(parts)


class Lines:
    """A number of lines over all questions, and one for each that got no answer."""

    def __init__(self, total: int, out: TextIO, *, lines: int = _LINES) -> None:
        self._tally = _Tally(total)
        self._out = out
        self._lines = lines

    def answered(self, usd: float | None) -> None:
        """A question has an answer."""
        self._tally.add(usd)
        self._print()

    def failed(self, name: str | float, why: str, usd: float | None) -> None:
        """A question got no answer."""
        self._tally.failures += 1
        self._tally.add(usd)
        print(f"{name}: {why}", file=self._out, flush=True)
        self._print()

    def _print(self) -> None:
        tally, lines = self._tally, self._lines
        step = tally.done * lines // tally.total > (tally.done - 1) * lines // tally.total
        if step or (lines and tally.done == tally.total):
            remarks = tally.remarks()
            print(f"{tally.done} of {tally.total}{f', {remarks}' if remarks else ''}", file=self._out, flush=True)


class OnTerminal:
    """A bar that is redrawn; what got no answer is printed above it."""

    def __init__(self, total: int, bar: Bar) -> None:
        self._tally = _Tally(total)
        self._bar = bar
        self._task: TaskID = bar.add_task("", total=total)

    def answered(self, usd: float | None) -> None:
        """A question has an answer."""
        self._tally.add(usd)
        self._draw()

    def failed(self, name: str | float, why: str, usd: float | None) -> None:
        """A question got no answer."""
        self._tally.failures += 1
        self._tally.add(usd)
        self._bar.console.print(f"{name}: {why}", markup=False, highlight=False)
        self._draw()

    def _draw(self) -> None:
        self._bar.update(self._task, completed=self._tally.done, description=self._tally.remarks())
