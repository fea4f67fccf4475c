"""Print the strict completion language as a grammar for constrained decoders.

Everything that a model writes under the grammar is bounded prose, followed by a valid workflow. The server of llama.cpp
takes --format gbnf as `grammar` in the body of a request. The first comment says how large max_tokens must be so that
no completion is cut.
"""

from __future__ import annotations

import argparse

from wfdsl.cli.display.streams import print_utf8
from wfdsl.cli.options import count, count_or_zero
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.language.constrained import MAX_PROSE, MAX_SUBTASK, gbnf, llguidance_lark

_MOST_WORKERS = 1000  # our choice
_DIALECTS = {"llguidance": llguidance_lark, "gbnf": gbnf}


EXAMPLES = ("wfdsl grammar --format gbnf --pool-size 3",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl grammar`."""
    parser.add_argument("--format", choices=[*_DIALECTS], required=True, help="llguidance's Lark, or llama.cpp's GBNF")
    workers = parser.add_mutually_exclusive_group(required=True)
    workers.add_argument("--pool-size", type=pool_size, metavar="N", help="the workers are 0 to N - 1")
    workers.add_argument("--workers", type=worker_indices, metavar="LIST", help="the workers, such as 0,2,5")
    parser.add_argument(
        "--max-steps", type=count, default=DEFAULT_MAX_STEPS, metavar="N", help="most steps (default: %(default)s)"
    )
    parser.add_argument(
        "--max-prose",
        type=count_or_zero,
        default=MAX_PROSE,
        metavar="CHARS",
        help="most characters before the lists; 0 for none (default: %(default)s)",
    )
    parser.add_argument(
        "--max-subtask",
        type=count,
        default=MAX_SUBTASK,
        metavar="CHARS",
        help="most characters of a subtask (default: %(default)s)",
    )
    parser.add_argument(
        "--max-reasoning",
        type=count_or_zero,
        default=0,
        metavar="CHARS",
        help="most characters of free reasoning before the lists, instead of prose (default: %(default)s, none)",
    )
    parser.add_argument(
        "--access",
        choices=["lists", "binary"],
        default="lists",
        help="what an access entry may be: also a list of earlier steps, or only [] and all (default: %(default)s)",
    )
    parser.add_argument(
        "--recursion", action="store_true", help="for rounds after round 0: three empty lists are valid"
    )


def pool_size(text: str) -> int:
    """An argument that is a number of workers; each is an alternative of the grammar."""
    size: int = count(text)
    if size > _MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"must be at most {_MOST_WORKERS} (got {size})")
    return size


def worker_indices(text: str) -> tuple[int, ...]:
    """An argument that is a list of worker indices."""
    return tuple(count_or_zero(part.strip()) for part in text.split(","))


def execute(args: argparse.Namespace) -> int:
    """Print the grammar."""
    grammar = _DIALECTS[args.format](
        args.workers or range(args.pool_size),
        args.max_steps,
        max_prose=args.max_prose,
        max_subtask=args.max_subtask,
        max_reasoning=args.max_reasoning,
        recursion=args.recursion,
        access=args.access,
    )
    print_utf8(grammar)
    return 0
