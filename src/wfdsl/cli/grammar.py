"""`wfdsl check --grammar`: the strict completion language as a grammar for constrained decoders.

Everything that a model writes under the grammar is bounded prose, followed by a valid workflow. The server of llama.cpp
takes `gbnf` as `grammar` in the body of a request. The first comment says how large max_tokens must be so that no
completion is cut.
"""

from __future__ import annotations

import argparse

from wfdsl.cli.display.streams import print_utf8
from wfdsl.cli.inputs import check_options_of, load_pool
from wfdsl.cli.options import count, count_or_zero
from wfdsl.errors import UsageError
from wfdsl.language.check import DEFAULT_MAX_STEPS, CheckConfig

_MOST_WORKERS = 1000  # our choice; each is an alternative of the grammar


def add_grammar_options(parser: argparse.ArgumentParser) -> None:
    """Add `--grammar`, and the bounds of what a model may write under it."""
    own = parser.add_argument_group("grammar")
    own.add_argument(
        "--grammar",
        choices=["llguidance", "gbnf"],
        help="print the grammar of strict completions, as llguidance's Lark or llama.cpp's GBNF; with --pool or "
        "--pool-size",
    )
    for name, least, about in (
        ("prose", count_or_zero, "most characters before the lists (default: 200)"),
        ("subtask", count, "most characters of a subtask (default: 200)"),
        ("reasoning", count_or_zero, "most characters of free reasoning before the lists, instead of prose"),
    ):
        own.add_argument(f"--max-{name}", type=least, metavar="CHARS", help=about)


def print_grammar(args: argparse.Namespace) -> int:
    """Print the grammar for the workers and limits that the options name."""
    from wfdsl.language.constrained import gbnf, llguidance_lark

    if args.files:
        raise UsageError(f"--grammar reads no file: leave {args.files[0]} out")
    pool = load_pool(args)
    if pool is None and args.pool_size is None:
        raise UsageError("--grammar needs the workers: give --pool or --pool-size")
    workers = range(args.pool_size) if pool is None else pool.indices
    if len(workers) > _MOST_WORKERS:
        raise UsageError(f"a grammar has at most {_MOST_WORKERS} workers (got {len(workers)})")
    config = CheckConfig(**check_options_of(args, pool))
    given = {name: getattr(args, name) for name in ("max_prose", "max_subtask", "max_reasoning")}
    grammar = (gbnf if args.grammar == "gbnf" else llguidance_lark)(
        workers,
        config.max_steps or DEFAULT_MAX_STEPS,
        recursion=config.recursion,
        access=config.access,
        **{name: value for name, value in given.items() if value is not None},
    )
    print_utf8(grammar)
    return 0
