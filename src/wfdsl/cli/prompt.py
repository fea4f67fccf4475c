"""Print exactly what a Conductor would be sent: the messages, and nothing is asked.

With --round 2 or later the message that asks for a revision is printed too; --completion and --response hold what the
Conductor wrote and what came of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wfdsl.cli.conducting import add_prompt_options, max_steps_of, offering_of, prompt_of
from wfdsl.cli.inputs import count
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from wfdsl.workers.protocol import Message


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl prompt`."""
    parser.add_argument("-q", "--question", metavar="TEXT", required=True, help="the question to answer")
    parser.add_argument("--round", type=count, default=1, metavar="N", help="1 asks, 2 and later revise (default: 1)")
    parser.add_argument("--rounds", type=count, default=1, metavar="N", help="the most revisions (default: 1)")
    parser.add_argument("--completion", metavar="FILE", help="what the Conductor wrote in the round before")
    parser.add_argument("--response", metavar="FILE", help="the final response of the round before")
    parser.add_argument("--json", action="store_true", help="print the messages as JSON, with the prompt's hash")
    add_prompt_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the messages."""
    messages, prompt = _messages(args), prompt_of(args)
    if args.json:
        print(json.dumps({"prompt": prompt.stamp, "messages": messages}, ensure_ascii=False, indent=2))
    else:
        print("\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages))
    return 0


def _messages(args: argparse.Namespace) -> list[Message]:
    from wfdsl.conductor.offer import Offer
    from wfdsl.pool import Pool

    prompt, offering, pool, steps = prompt_of(args), offering_of(args), Pool.load(args.pool), max_steps_of(args)
    chosen = offering.choose(pool, args.question)
    offer = Offer.of(chosen, offering.numbering(chosen, args.question))
    messages = list(prompt.ask(args.question, offer, max_steps=steps))
    if args.round == 1:
        if args.completion or args.response:
            raise UsageError("--completion and --response belong to a revision: add --round 2")
        return messages
    if args.round > args.rounds + 1:
        raise UsageError(f"round {args.round} needs --rounds {args.round - 1}")
    completion: Message = {"role": "assistant", "content": _text(args.completion, "{completion}")}
    response, left = _text(args.response, "{response}"), args.rounds + 1 - args.round
    return [*messages, completion, prompt.revise(response, max_steps=steps, rounds_left=left)]


def _text(path: str | None, mark: str) -> str:
    """A file's text; a mark where none is given."""
    from wfdsl.api import read_text

    if path is None:
        return mark
    text = read_text(path)
    if text is None:
        raise UsageError(f"{path}: the text is too long")
    return text
