"""Answer a question: a Conductor writes a workflow, the workers of the pool carry it out, the Conductor may revise it.

The answer goes to standard output, progress and remarks to standard error. --pool takes models by their names, such as
openai:gpt-5,openai:gpt-5-mini; the first one writes the workflow unless --conductor names another. Without --pool, a
very small model that runs on this machine plans and answers. A .wf file instead of a Conductor is run on the question
as it is. With --from and --out, questions come from one JSON lines file and answers go to another; the same command
resumes where it stopped.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

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
)
from wfdsl.cli.output import print_json, print_now, print_run
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import RunSettings
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.record import Run
from wfdsl.render.status import dollars
from wfdsl.render.text import counted

if TYPE_CHECKING:  # start-up time
    from wfdsl.cli.solving import Solving

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

    many = args.source is not None
    if many and (args.asked is not None or args.question is not None):
        raise UsageError("give a QUESTION, or a file of questions with --from, not both")
    if many != (args.out is not None):
        raise UsageError("--from and --out need each other: the file of questions, and the file that takes the answers")
    question = "" if many else question_of(args)
    solving = solving_of(args)
    remark = remark_on_choice(solving)
    if remark and not args.quiet:
        print_now(f"note: {remark}")
    if many:
        return solve_lines(solving, args)
    return (_print_dry_run if args.dry_run else _answer)(solving, question, args)


def _answer(solving: Solving, question: str, args: argparse.Namespace) -> int:
    """Solve one question and print the answer."""
    from wfdsl.cli.display.live import followed, new_run_options
    from wfdsl.conductor.policy import Solution, solved

    options = new_run_options(solving.experiment, solving.origin)

    async def solve(**more: Any) -> Run:
        return (await solved(solving.policy, question, solving.pool, **options, **more)).run

    solution = Solution(followed(solve, solving.pool, args, options))
    for event in () if args.quiet else solution.events:
        print_now(event)
    print_run(solution, as_json=args.json)
    return 0


def _print_dry_run(solving: Solving, question: str, args: argparse.Namespace) -> int:
    from wfdsl.cli.run import print_estimate
    from wfdsl.conductor.conductor import Conductor
    from wfdsl.conductor.estimate import estimate_solve
    from wfdsl.conductor.policy import WorkflowPolicy

    policy, pool, run = solving.policy, solving.pool, solving.experiment.run
    if isinstance(policy, WorkflowPolicy):
        return print_estimate(policy.workflow, question, pool, run, as_json=args.json)
    assert isinstance(policy, Conductor)  # a policy of one's own has no dry run
    found = estimate_solve(policy, question, pool, question_for=run.question_for)
    if args.json:
        bound = {"calls": found.calls, "usd": found.usd, "price_not_known": found.price_not_known}
        print_json({"prompt": policy.settings.prompt.fingerprint, "messages": found.messages, **bound}, indent=2)
        return 0
    print("\n\n".join(f"[{message['role']}]\n{message['content']}" for message in found.messages))
    rounds = f"{counted(found.rounds, 'round')} of {found.steps} steps"
    print(f"\ncalls at most: {found.calls} ({rounds}, and {found.completions} completions in each)")
    if found.usd is None:
        print(f"cost at most: not known, without the prices of {', '.join(found.price_not_known)}")
    else:
        print(f"cost at most: {dollars(found.usd)}, usually far less")
    return 0
