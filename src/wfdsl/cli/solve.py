"""Answer a question: a Conductor writes a workflow, the workers of the pool carry it out, the Conductor may revise it.

The answer goes to standard output, progress and remarks to standard error. Without --conductor and --pool both are the
small model that runs on this machine. With --from and --to, questions come from one JSON lines file and answers go to
another; the same command goes on where it stopped.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from wfdsl.cli.conducting import add_conductor_options, add_prompt_options, conductor_of
from wfdsl.cli.inputs import count
from wfdsl.cli.run import add_run_options, budget_of, display_for_stderr, followed, listener_for
from wfdsl.errors import BudgetExhausted, RunFailed, UsageError

if TYPE_CHECKING:
    import argparse

    from wfdsl.conductor.conductor import Conductor
    from wfdsl.conductor.policy import Solution
    from wfdsl.interpreter.record import Run
    from wfdsl.pool import Pool


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl solve`."""
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("-q", "--question", metavar="TEXT", help="the question to answer")
    asked.add_argument("--from", dest="source", metavar="FILE", help="a JSON lines file with questions")
    parser.add_argument("--to", dest="target", metavar="FILE", help="the JSON lines file that takes the answers")
    parser.add_argument(
        "--map", default="", metavar="OURS=THEIRS,...", help="how the file calls `question` and `id`, if otherwise"
    )
    parser.add_argument("--parallel", type=count, default=4, metavar="N", help="questions at a time (default: 4)")
    parser.add_argument("--dry-run", action="store_true", help="ask nobody: print what the Conductor would be sent")
    parser.add_argument("--seed", type=int, metavar="N", help="make workers that honour a seed repeatable")
    parser.add_argument("--max-depth", type=int, default=1, metavar="N", help="levels of Conductor nodes (default: 1)")
    parser.add_argument("--run-id", metavar="RUN", help="name the run, or go on with a run of this name")
    parser.add_argument("--no-journal", action="store_true", help="keep nothing: the run cannot be gone on with")
    add_conductor_options(parser)
    add_prompt_options(parser)
    add_run_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Answer, or print what would be sent."""
    from wfdsl.pool import Pool

    if (args.source is None) != (args.target is None):
        raise UsageError("--from and --to go together: one has the questions, the other takes the answers")
    pool = Pool.load(args.pool)
    conductor = conductor_of(args, pool)
    if args.source is not None:
        from wfdsl.cli.solve_many import solve_lines

        return solve_lines(conductor, pool, args)
    if args.dry_run:
        _print_messages(conductor, pool, args)
        return 0
    solution = _solve(conductor, pool, args)
    for event in solution.events:
        print(event, file=sys.stderr)
    print(solution.to_json(indent=2) if args.json else solution.answer)
    return 0


def _print_messages(conductor: Conductor, pool: Pool, args: argparse.Namespace) -> None:
    settings, offer = conductor.settings, conductor.offer(args.question, pool)
    messages = settings.prompt.ask(args.question, offer, max_steps=settings.max_steps)
    if args.json:
        print(json.dumps({"prompt": settings.prompt.stamp, "messages": messages}, ensure_ascii=False, indent=2))
        return
    print("\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages))


def _solve(conductor: Conductor, pool: Pool, args: argparse.Namespace) -> Solution:
    from wfdsl.conductor.policy import Solution
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.running import new_run_id

    run_id, display = args.run_id or new_run_id(), display_for_stderr()

    async def solved() -> Run:
        solution = await conductor.solve(
            args.question,
            pool,
            budget=budget_of(args),
            journal=None if args.no_journal else default_path(),
            concurrency=args.concurrency,
            seed=args.seed,
            timeout_s=args.timeout,
            step_timeout_s=args.step_timeout,
            max_depth=args.max_depth,
            on_event=listener_for(display, args),
            run_id=run_id,
            reuse=args.reuse,
            origin={"solve": args.conductor, "pool": args.pool},
        )
        return solution.run

    try:
        return Solution(followed(run_id, solved(), display, as_json=args.json, kept=False))
    except (KeyboardInterrupt, RunFailed, BudgetExhausted):
        if not args.no_journal:
            print(f"the same command with `--run-id {run_id}` goes on from here", file=sys.stderr)
        raise
