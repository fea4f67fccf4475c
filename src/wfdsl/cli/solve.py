"""Answer a question: a Conductor writes a workflow, the workers of the pool carry it out, the Conductor may revise it.

The answer goes to standard output, progress and remarks to standard error. --pool takes models by their names, such as
openai:gpt-5,openai:gpt-5-mini; the first one writes the workflow unless --conductor names another. Without --pool, a
very small model that runs on this machine plans and answers. A .wf file instead of a Conductor is run on the question
as it is. With --from and --out, questions come from one JSON lines file and answers go to another; the same command
resumes where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from wfdsl.cli.inputs import add_question_options, question_of
from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_config_options,
    add_options,
    add_pool_option,
    add_protocol_option,
    add_trace_options,
    group,
    run_name,
)
from wfdsl.cli.output import print_json, print_messages
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import RunSettings
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.record import Run
from wfdsl.render.status import dollars

if TYPE_CHECKING:  # start-up time
    from wfdsl.cli.display.progress import Progress
    from wfdsl.cli.solving import Solving
    from wfdsl.conductor.policy import Solution
    from wfdsl.interpreter.context import Question


EXAMPLES = (
    'wfdsl solve "Is 91 a prime?" --pool openai:gpt-5,openai:gpt-5-mini',
    "wfdsl solve --from questions.jsonl --out answers.jsonl --pool pool.toml --parallel 8",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl solve`."""
    add_question_options(parser)
    asked, output = group(parser, INPUT), group(parser, OUTPUT)
    asked.add_argument("--from", dest="source", metavar="FILE", help="a JSON lines file with questions")
    output.add_argument("-o", "--out", metavar="FILE", help="with --from: the JSON lines file that takes the answers")
    output.add_argument(
        "--dry-run",
        action="store_true",
        help="call no model: print what the Conductor would be sent, and what the question may cost",
    )
    output.add_argument("--run-id", type=run_name, metavar="RUN", help="name the run, or resume the run of this name")
    add_pool_option(parser, "the workers (default: local)")
    add_config_options(parser)
    add_protocol_option(parser)
    add_trace_options(parser)
    add_options(parser, ConductorConfig, "conductor")
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run")


def execute(args: argparse.Namespace) -> int:
    """Answer, or print what would be sent."""
    from wfdsl.cli.solving import remark_on_choice, solve_lines, solving_of

    _require_fitting_options(args)
    question = "" if args.source is not None else question_of(args)
    solving = solving_of(args)
    remark = remark_on_choice(solving)
    if remark and not args.quiet:
        print(f"note: {remark}", file=sys.stderr)
    if args.source is not None:
        return solve_lines(solving, args)
    if args.dry_run:
        _print_dry_run(solving, question, as_json=args.json)
        return 0
    return answer(solving, question, args)


def answer(solving: Solving, question: Question, args: argparse.Namespace) -> int:
    """Solve one question and print the answer."""
    from wfdsl.cli.display.progress import progress_for
    from wfdsl.cli.output import print_result

    display = progress_for(args, solving.pool)
    solution = _solve(solving, question, display, args)
    for event in () if args.quiet else solution.events:
        print(event, file=sys.stderr)
    print_result(solution.run, solution.to_json(indent=2) if args.json else None)
    return 0


def _require_fitting_options(args: argparse.Namespace) -> None:
    if args.source is not None and (args.asked is not None or args.question is not None):
        raise UsageError("give a QUESTION, or a file of questions with --from, not both")
    if args.source is not None and args.out is None:
        raise UsageError("--from needs --out: the file that takes the answers")
    if args.source is None and args.out is not None:
        raise UsageError("--out needs --from: it is for the questions of a file")
    if args.source is not None and args.run_id is not None:
        raise UsageError(
            "--run-id names one run: with --from, each question has a run of its own, which is resumed by itself"
        )


def _print_dry_run(solving: Solving, question: str, *, as_json: bool) -> None:
    from wfdsl.cli.run import print_estimate
    from wfdsl.conductor.conductor import Conductor
    from wfdsl.conductor.estimate import estimate_solve
    from wfdsl.conductor.policy import WorkflowPolicy

    policy, pool, run = solving.policy, solving.pool, solving.experiment.run
    if isinstance(policy, WorkflowPolicy):
        print_estimate(policy.workflow, question, pool, run, as_json=as_json)
        return
    assert isinstance(policy, Conductor)  # a policy of one's own has no dry run
    found = estimate_solve(policy, question, pool, question_for=run.question_for)
    stamp = policy.settings.prompt.fingerprint
    if as_json:
        bound = {"calls": found.calls, "usd": found.usd, "price_not_known": found.price_not_known}
        print_json({"prompt": stamp, "messages": found.messages, **bound}, indent=2)
        return
    print_messages(found.messages, stamp, as_json=False)
    rounds = f"{found.rounds} round{'s' if found.rounds > 1 else ''} of {found.steps} steps"
    print(f"\ncalls at most: {found.calls} ({rounds}, and {found.completions} completions in each)")
    if found.usd is None:
        print(f"cost at most: not known, without the prices of {', '.join(found.price_not_known)}")
    else:
        print(f"cost at most: {dollars(found.usd)}, usually far less")


def _solve(solving: Solving, question: Question, display: Progress | None, args: argparse.Namespace) -> Solution:
    from wfdsl.cli.display.live import followed, listener_for, new_run_options
    from wfdsl.conductor.policy import Solution
    from wfdsl.interpreter.running import new_run_id

    run_id = args.run_id or new_run_id()
    options = new_run_options(solving.experiment, run_id=run_id, origin=solving.origin)
    options["on_event"] = listener_for(display, otel=args.otel, origin=solving.origin)
    kept, can_be_resumed = solving.experiment.run.journal, "file" in solving.origin
    command = f"wfdsl runs resume {run_id}" if can_be_resumed else f"the same command with --run-id {run_id}"

    async def solved() -> Run:
        return (await solving.policy.solve(question, solving.pool, **options)).run

    return Solution(followed(solved(), display, as_json=args.json, again=command if kept else None))
