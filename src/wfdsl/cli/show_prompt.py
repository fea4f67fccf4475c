"""`wfdsl solve --show-prompt`: exactly the messages that a Conductor would be sent; no model is called."""

from __future__ import annotations

import argparse

from wfdsl.cli.options import experiment_of, require_no_parameters
from wfdsl.cli.output import print_messages
from wfdsl.conductor.listing import list_workers
from wfdsl.conductor.named import conductor_name, named_prompt
from wfdsl.conductor.settings import limits_of
from wfdsl.errors import UsageError


def show_prompt(question: str, args: argparse.Namespace) -> int:
    """Print the messages; of a later round with placeholders for what the Conductor wrote and its final response."""
    require_no_parameters(args, "a Conductor has no parameters")
    experiment = experiment_of(args)
    table = experiment.conductor
    pool, _ = experiment.with_pool()
    name = conductor_name(table, pool)
    if name.endswith(".wf"):
        raise UsageError(f"{name} is run as it is, without a Conductor: see `wfdsl run --dry-run`")
    asked = named_prompt(table, pool)
    steps, rounds = limits_of(table, asked)
    messages = list(
        asked.prompt.ask(
            question,
            list_workers(table, pool, question),
            max_steps=steps,
            question_for=experiment.run.question_for,
            access=table.access,
            effort=table.effort,
        )
    )
    if args.round > rounds:
        raise UsageError(f"round {args.round} needs --max-rounds {args.round}")
    if args.round:
        left, most = rounds - args.round, table.max_response_chars
        revision = asked.prompt.revise("{response}", max_steps=steps, rounds_left=left, max_chars=most)
        messages += [{"role": "assistant", "content": "{completion}"}, revision]
    print_messages(messages, asked.prompt.fingerprint, as_json=args.json)
    return 0
