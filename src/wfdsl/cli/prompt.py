"""Print exactly the messages that a Conductor would be sent; no model is called.

With --round 1 or later, the message that asks for a revision is printed too; --completion and --response hold what the
Conductor wrote in the round before, and its final response.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from wfdsl.cli.inputs import add_question_options, question_of
from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_config_options,
    add_options,
    add_pool_option,
    add_protocol_option,
    count_or_zero,
    experiment_of,
    group,
    require_no_parameters,
)
from wfdsl.cli.output import print_messages
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.protocols import Message

if TYPE_CHECKING:  # start-up time
    from wfdsl.conductor.checkpoint import PromptSettings
    from wfdsl.conductor.listing import WorkerListing
    from wfdsl.experiment import Experiment


EXAMPLES = ('wfdsl prompt "Is 91 a prime?" --pool pool.toml',)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl prompt`."""
    add_question_options(parser)
    asked = group(parser, INPUT)
    asked.add_argument(
        "--round", type=count_or_zero, default=0, metavar="N", help="0 asks, later ones revise (default: 0)"
    )
    asked.add_argument("--completion", metavar="FILE", help="what the Conductor wrote in the round before")
    asked.add_argument("--response", metavar="FILE", help="the final response of the round before")
    group(parser, OUTPUT).add_argument(
        "--json", action="store_true", help="print the messages as JSON, with the prompt's fingerprint"
    )
    add_pool_option(parser, "the workers (default: local)")
    add_config_options(parser)
    add_protocol_option(parser)
    add_options(parser, ConductorConfig, "conductor")


def execute(args: argparse.Namespace) -> int:
    """Print the messages."""
    from wfdsl.conductor.listing import list_workers
    from wfdsl.conductor.named import conductor_name, named_prompt

    require_no_parameters(args, "a Conductor has no parameters")
    experiment = experiment_of(args)
    table, question = experiment.conductor, question_of(args)
    pool, _ = experiment.with_pool()
    name = conductor_name(table, pool)
    if name.endswith(".wf"):
        raise UsageError(f"{name} is run as it is, without a Conductor: see `wfdsl run --dry-run`")
    asked, listing = named_prompt(table, pool), list_workers(table, pool, question)
    print_messages(_messages(args, question, experiment, asked, listing), asked.prompt.fingerprint, as_json=args.json)
    return 0


def _messages(
    args: argparse.Namespace, question: str, experiment: Experiment, asked: PromptSettings, listing: WorkerListing
) -> list[Message]:
    from wfdsl.conductor.settings import limits_of

    prompt, table = asked.prompt, experiment.conductor
    steps, rounds = limits_of(table, asked)
    asked_for = experiment.run.question_for
    messages = list(
        prompt.ask(
            question,
            listing,
            max_steps=steps,
            question_for=asked_for,
            access=table.access,
            effort=table.effort,
        )
    )
    if args.round == 0:
        if args.completion or args.response:
            raise UsageError("--completion and --response belong to a revision: add --round 1")
        return messages
    if args.round > rounds:
        raise UsageError(f"round {args.round} needs --max-rounds {args.round}")
    completion: Message = {"role": "assistant", "content": _text(args.completion, "{completion}")}
    response, left = _text(args.response, "{response}"), rounds - args.round
    revision = prompt.revise(response, max_steps=steps, rounds_left=left, max_chars=table.max_response_chars)
    return [*messages, completion, revision]


def _text(path: str | None, mark: str) -> str:
    """A file's text; a placeholder if no file is given."""
    from wfdsl.api import read_text

    if path is None:
        return mark
    text = read_text(path)
    if text is None:
        raise UsageError(f"{path}: the text is too long")
    return text
