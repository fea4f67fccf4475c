"""Who answers the questions of `wfdsl solve`, and `--from FILE --out FILE`: many questions, several at a time.

Answers are written in the order in which they come. A line that has an answer is not asked again, so the same command
continues where it stopped. What a question had paid for before is in the journal, under a run id that is made of the
file, the question and who solves it.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from wfdsl.api import Checked, analyze_path
from wfdsl.cli.display.live import listener_for, new_run_options, stopped_by_signals
from wfdsl.cli.display.streams import OutputFailed
from wfdsl.cli.inputs import names_of, require_workflow
from wfdsl.cli.options import experiment_of, given, parameters_of, require_no_parameters
from wfdsl.cli.output import FAILED, SMALL_MODEL, SPENT, Interrupted, advised, print_now
from wfdsl.cli.question_files import field_of, read_records
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import LOCAL
from wfdsl.conductor.named import conductor_name, named_conductor, own_policy
from wfdsl.conductor.policy import Policy, Solution, WorkflowPolicy
from wfdsl.conductor.round_log import gave_up
from wfdsl.errors import UsageError, WfdslError
from wfdsl.experiment import Experiment, found_anywhere
from wfdsl.interpreter.budget import UNLIMITED, BudgetTracker
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.record import BudgetExhausted, RunFailed, as_unicode, workflow_to_list
from wfdsl.interpreter.running import RunOptions, checked_question
from wfdsl.language.workflow import Workflow
from wfdsl.own_code import file_of
from wfdsl.workers.pool import Pool

_AGAIN = "continue with: the same command"
_GIVEN_UP = "no_valid_workflow"
"""The field that is true where a Conductor wrote no valid workflow."""


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
    return "" if solving.experiment.pool is not None else SMALL_MODEL.format("plans and answers")


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


class _Asked(NamedTuple):
    """A line of the file."""

    id: str | int | float
    """The line's own, or its number."""
    question: Question


def solve_lines(solving: Solving, args: argparse.Namespace) -> int:
    """Answer every question that has no answer yet; 3 if one got none, 4 if the budget is spent."""
    everything = _questions(args.source)
    if Path(args.out).exists() and Path(args.out).samefile(args.source):
        raise UsageError(f"--out {args.out} also holds the questions: name another file for the answers")
    answered, given_up = _before(args.out)
    left = [asked for asked in everything if answered.get(str(asked.id)) != asked.question]
    if len(left) < len(everything) and not args.quiet:
        print_now(f"{len(everything) - len(left)} of {len(everything)} are answered already")
    if args.dry_run:
        return 0
    with _opened(args.out) as out:
        batch = _Batch(solving, args, given_up, len(left), out)
        try:
            asyncio.run(stopped_by_signals(batch.work(left), _AGAIN))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise Interrupted(_AGAIN) from None
    return batch.code()


def _questions(source: str) -> list[_Asked]:
    """The questions of a file.

    Raises:
        UsageError: the file cannot be read, a line has no question, or two lines have the same id.
    """
    found: dict[str, _Asked] = {}
    for number, record in read_records(source):
        place, own = f"{source}:{number}", record.get("id", number)
        question = field_of(record, "question", place)
        if not question or not isinstance(question, str | list) or not isinstance(own, str | int | float):
            raise UsageError(f"{place}: question must be a text or a list of chat messages, and id a text or a number")
        if str(own) in found:
            raise UsageError(f"{place}: has the id {own!r}, which another line has already; ids must be unique")
        found[str(own)] = _Asked(own, question)
    return list(found.values())


def _before(target: str) -> tuple[dict[str, Question], Counter[str]]:
    """What a file of answers holds already: answered questions by id, and how often a Conductor gave up on one."""
    answered: dict[str, Question] = {}
    given_up: Counter[str] = Counter()
    lines = Path(target).read_bytes().splitlines() if Path(target).is_file() else []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:  # cut off when an earlier command was killed
            continue
        if row.get("answer") is not None:
            answered[str(row.get("id"))] = row.get("question", "")
        given_up[str(row.get("id"))] += row.get(_GIVEN_UP, False)
    return answered, given_up


def _opened(target: str) -> IO[bytes]:
    """The file, open at its end, on a new line; its folder is made if it does not exist."""
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    out = path.open("ab", buffering=0)
    if out.tell() and path.read_bytes()[-1:] != b"\n":
        out.write(b"\n")
    return out


class _Batch:
    """The questions of one command, and their results."""

    def __init__(
        self, solving: Solving, args: argparse.Namespace, given_up: Counter[str], total: int, out: IO[bytes]
    ) -> None:
        self._solving = solving
        self._args = args
        self._given_up = given_up
        self._total = total
        self._out = out
        self._done = self._failures = 0
        self._spent = ""

    def code(self) -> int:
        """The exit code."""
        if self._spent:
            print_now(f"wfdsl solve: {self._spent}")
            return SPENT
        return FAILED if self._failures else 0

    async def work(self, asked: list[_Asked]) -> None:
        """Answer them.

        Raises:
            UsageError: the pool or the Conductor cannot be used, or the answers cannot be written.
        """
        waiting, solver, run = iter(asked), self._solving.solver, self._solving.experiment.run
        model = solver.open() if isinstance(solver, Conductor) else nullcontext()
        refused: list[WfdslError | OutputFailed] = []
        with Journal() if run.journal else nullcontext() as journal:
            options = _shared(new_run_options(self._solving.experiment, origin=self._solving.origin), journal)
            async with self._solving.pool.open(), model:
                try:
                    async with asyncio.TaskGroup() as group:
                        for _ in range(min(run.parallel, len(asked))):
                            group.create_task(self._take(waiting, options))
                except* (WfdslError, OutputFailed) as several:
                    refused += [error for error in several.exceptions if not isinstance(error, ExceptionGroup)]
        if refused:
            raise refused[0]

    async def _take(self, waiting: Iterator[_Asked], options: RunOptions) -> None:
        for asked in waiting:
            if self._spent:
                return
            own: RunOptions = {**options, "run_id": self._run_id(asked)}
            own["on_event"] = listener_for(None, otel=self._args.otel, origin=self._solving.origin)
            try:
                checked_question(asked.question)
            except UsageError as error:
                self._fail(asked, str(error))
                continue
            try:
                solution = await self._solving.solve(asked.question, own)
            except BudgetExhausted as error:
                self._spent = advised(error, "the same command")
            except RunFailed as error:
                lost = {_GIVEN_UP: True} if gave_up(error.run) else {}
                self._fail(asked, advised(error, "the same command"), run=error.run.to_dict(), **lost)
            else:
                self._write(asked, solution.to_dict())

    def _fail(self, asked: _Asked, why: str, **more: Any) -> None:
        self._failures += 1
        self._write(asked, {"answer": None, "error": why, **more})
        print_now(f"{asked.id}: {why}")

    def _run_id(self, asked: _Asked) -> str:
        parts: list[Any] = [
            str(Path(self._args.out).resolve()),
            str(asked.id),
            asked.question,
            _identity(self._solving.solver),
        ]
        if again := self._given_up[str(asked.id)]:
            parts.append(again)
        return f"solve-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"

    def _write(self, asked: _Asked, result: dict[str, Any]) -> None:
        """Write a line of JSON; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
        row = {"id": asked.id, "question": asked.question, **result}
        line = as_unicode(json.dumps(row, ensure_ascii=False))
        try:
            left = f"{line}\n".encode()
            while left:
                left = left[self._out.write(left) :]
        except OSError as error:
            raise UsageError(
                f"{self._args.out}: cannot be written: {error.strerror}; what was paid for is in the journal"
            ) from error
        self._done += 1
        if not self._args.quiet:
            print_now(f"{self._done} of {self._total}")
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
