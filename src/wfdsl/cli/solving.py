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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from wfdsl.api import analyze_path
from wfdsl.cli.display.live import listener_for, new_run_options, stopped_by_signals
from wfdsl.cli.inputs import require_workflow
from wfdsl.cli.options import experiment_of, parameters_of, require_no_parameters
from wfdsl.cli.output import FAILED, SMALL_MODEL, SPENT, Interrupted, advised, print_now
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import LOCAL, ConductorConfig
from wfdsl.conductor.named import conductor_name, named_policy
from wfdsl.conductor.policy import Policy, WorkflowPolicy, solved
from wfdsl.conductor.round_log import gave_up
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment, origin_of
from wfdsl.files import read_json_lines
from wfdsl.interpreter.budget import UNLIMITED, BudgetTracker
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.record import BudgetExhausted, RunFailed, as_unicode, workflow_to_list
from wfdsl.interpreter.running import RunOptions, checked_question
from wfdsl.own_code import file_of
from wfdsl.settings import options_of
from wfdsl.workers.pool import Pool

_AGAIN = "the same command"
_GIVEN_UP = "no_valid_workflow"
"""The field that is true where a Conductor wrote no valid workflow."""


@dataclass(frozen=True, slots=True)
class Solving:
    """Everything but the question."""

    policy: Policy
    """A Conductor, a `.wf` file that is run as it is, or a policy of one's own."""
    pool: Pool
    origin: dict[str, str]
    """Where workflow or Conductor, and the pool, were found, for resuming a run."""
    experiment: Experiment


def solving_of(args: argparse.Namespace) -> Solving:
    """What options and configuration describe.

    Raises:
        UsageError: something cannot be used.
        WorkflowError: a workflow that they name is not valid.
    """
    experiment = experiment_of(args)
    pool, pool_name = experiment.with_pool()
    name = conductor_name(experiment.conductor, pool)
    policy = _policy(name, experiment, pool, args)
    return Solving(policy, pool, origin_of(name, experiment.conductor, pool_name), experiment)


def remark_on_choice(solving: Solving) -> str:
    """Who conducts, where no one has been named; what the small model is, where nothing else is there."""
    name = solving.origin.get("solve")
    if name is None or solving.experiment.conductor.model or solving.pool.settings.conductor:
        return ""
    if name != LOCAL:
        return f"{name}, the first worker of the pool, writes the workflow; --conductor names another model"
    return "" if solving.experiment.pool is not None else SMALL_MODEL.format("plans and answers")


def _policy(name: str, experiment: Experiment, pool: Pool, args: argparse.Namespace) -> Policy:
    is_own, is_file = file_of(name) is not None, name.endswith(".wf")
    for option in options_of(ConductorConfig) if is_own or is_file else ():
        if option.name != "model" and f"conductor.{option.name}" in args:
            raise UsageError(f"{name} is run as it is, without a Conductor: leave out {option.flag}")
    if is_file:
        checked = analyze_path(name, pool=pool, params=parameters_of(args))
        return WorkflowPolicy(require_workflow(checked, quiet=args.quiet))
    require_no_parameters(args, f"{'a policy of your own' if is_own else 'a Conductor'} has no parameters")
    if is_own and args.dry_run:
        raise UsageError(f"{name} cannot say what it would ask before it runs: leave out --dry-run")
    return named_policy(experiment.conductor, pool)


_Asked: TypeAlias = tuple[str | int | float, Question]
"""A line of the file: its id or else its number, and the question."""


def solve_lines(solving: Solving, args: argparse.Namespace) -> int:
    """Answer every question that has no answer yet; 3 if one got none, 4 if the budget is spent."""
    everything = _questions(args.source)
    if Path(args.out).exists() and Path(args.out).samefile(args.source):
        raise UsageError(f"--out {args.out} also holds the questions: name another file for the answers")
    answered, given_up = _before(args.out)
    left = [(own, question) for own, question in everything if answered.get(str(own)) != question]
    if len(left) < len(everything) and not args.quiet:
        print_now(f"{len(everything) - len(left)} of {len(everything)} are answered already")
    if args.dry_run:
        from wfdsl.evaluation.evaluate import estimate_policy

        found = estimate_policy(args.source, solving.policy, [question for _, question in left], solving.pool, 1)
        print(json.dumps(asdict(found)) if args.json else found)
        return 0
    with _opened(args.out) as out:
        batch = _Batch(solving, args, given_up, len(left), out)
        try:
            asyncio.run(stopped_by_signals(batch.work(left), f"continue with: {_AGAIN}"))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise Interrupted(f"continue with: {_AGAIN}") from None
    if batch.spent:
        print_now(f"wfdsl solve: {batch.spent}")
        return SPENT
    return FAILED if batch.failures else 0


def _questions(source: str) -> list[_Asked]:
    """The questions of a file.

    Raises:
        UsageError: the file cannot be read, a line has no question, or two lines have the same id.
    """
    found: dict[str, _Asked] = {}
    for number, record in read_json_lines(source):
        place, question, own = f"{source}:{number}", record.get("question"), record.get("id", number)
        if not question or not isinstance(question, str | list) or not isinstance(own, str | int | float):
            raise UsageError(f"{place}: question must be a text or a list of chat messages, and id a text or a number")
        try:
            checked_question(question)
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from None
        if str(own) in found:
            raise UsageError(f"{place}: has the id {own!r}, which another line has already; ids must be unique")
        found[str(own)] = own, question
    if not found:
        raise UsageError(f"{source}: holds no question")
    return list(found.values())


def _before(target: str) -> tuple[dict[str, Question], Counter[str]]:
    """What a file of answers holds already: answered questions by id, and how often a Conductor gave up on one.

    Raises:
        UsageError: it holds something else.
    """
    answered: dict[str, Question] = {}
    given_up: Counter[str] = Counter()
    for line in Path(target).read_bytes().splitlines() if Path(target).is_file() else []:
        try:
            row = json.loads(line)
        except ValueError:
            row, begin = None, b'{"id": '
            if begin.startswith(line[: len(begin)]):  # cut off when an earlier command was killed
                continue
        if not isinstance(row, dict) or not {"id", "question", "answer"} <= row.keys():
            raise UsageError(f"--out {target} holds other lines than answers: name another file")
        if row["answer"] is not None:
            answered[str(row["id"])] = row["question"]
        given_up[str(row["id"])] += row.get(_GIVEN_UP, False)
    return answered, given_up


def _opened(target: str) -> IO[bytes]:
    """The file, open at its end, on a new line; its folder is made if it does not exist."""
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    out = path.open("ab", buffering=0)
    if out.tell() and path.read_bytes()[-1:] != b"\n":
        out.write(b"\n")
    return out


@dataclass(slots=True)
class _Batch:
    """The questions of one command, and their results."""

    solving: Solving
    args: argparse.Namespace
    given_up: Counter[str]
    total: int
    out: IO[bytes]
    done: int = 0
    failures: int = 0
    spent: str = ""

    async def work(self, asked: list[_Asked]) -> None:
        """Answer them; the budget and the limit of calls in flight hold for all together.

        Raises:
            UsageError: the pool or the Conductor cannot be used, or the answers cannot be written.
        """
        experiment, policy, waiting = self.solving.experiment, self.solving.policy, iter(asked)
        budget, most = experiment.budget, experiment.run.concurrency
        with Journal() if experiment.run.journal else nullcontext() as journal:
            options = new_run_options(experiment, self.solving.origin)
            options |= {"journal": journal, "concurrency": None}
            options["budget"] = None if budget == UNLIMITED else BudgetTracker(budget)
            options["limiter"] = None if most is None else ConcurrencyLimiter(most)
            async with self.solving.pool.open(), policy.open() if isinstance(policy, Conductor) else nullcontext():
                try:
                    async with asyncio.TaskGroup() as group:
                        for _ in range(min(experiment.run.parallel, len(asked))):
                            group.create_task(self._take(waiting, options))
                except BaseExceptionGroup as several:  # what stops one question stops all
                    raise several.exceptions[0] from None

    async def _take(self, waiting: Iterator[_Asked], options: RunOptions) -> None:
        solving = self.solving
        for asked in waiting:
            if self.spent:
                return
            own, question = asked
            heard = listener_for(None, otel=self.args.otel, origin=solving.origin)
            asked_with: RunOptions = {**options, "run_id": self._run_id(own, question), "on_event": heard}
            try:
                solution = await solved(solving.policy, question, solving.pool, **asked_with)
            except BudgetExhausted as error:
                self.spent = advised(error, _AGAIN)
            except RunFailed as error:
                self.failures += 1
                why, lost = advised(error, _AGAIN), {_GIVEN_UP: True} if gave_up(error.run) else {}
                self._write(asked, {"answer": None, "error": why, "run": error.run.to_dict(), **lost})
                print_now(f"{own}: {why}")
            else:
                self._write(asked, solution.to_dict())

    def _run_id(self, own: str | int | float, question: Question) -> str:
        policy = self.solving.policy
        parts: list[Any] = [str(Path(self.args.out).resolve()), str(own), question]
        if isinstance(policy, WorkflowPolicy):
            parts.append(workflow_to_list(policy.workflow))
        elif isinstance(policy, Conductor):
            parts += [policy.entry.model, policy.settings.prompt.hash]
        else:
            parts.append(self.solving.origin["solve"])
        parts.append(self.given_up[str(own)])
        return f"solve-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"

    def _write(self, asked: _Asked, result: dict[str, Any]) -> None:
        """Write a line of JSON; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
        own, question = asked
        line = as_unicode(json.dumps({"id": own, "question": question, **result}, ensure_ascii=False))
        try:
            left = f"{line}\n".encode()
            while left:
                left = left[self.out.write(left) :]
        except OSError as error:
            raise UsageError(
                f"{self.args.out}: cannot be written: {error.strerror}; what was paid for is in the journal"
            ) from error
        self.done += 1
        if not self.args.quiet:
            print_now(f"{self.done} of {self.total}")
        if self.args.json:
            print(line, flush=True)
