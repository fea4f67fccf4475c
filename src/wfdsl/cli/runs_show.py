"""Show everything that happened in a run: its rounds, each step with its reply, and the answer, as Markdown."""

from __future__ import annotations

import argparse

from wfdsl.cli.options import complete_runs


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl runs show`."""
    about = "the run's id, or how it begins; `last` is the newest"
    complete_runs(parser.add_argument("run", metavar="RUN", help=about))
    parser.add_argument("--json", action="store_true", help="print the record as JSON, with all messages")


def execute(args: argparse.Namespace) -> int:
    """Print the record; a terminal shows what the Markdown means."""
    from wfdsl.cli.display.consoles import stdout_console
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, run_of
    from wfdsl.viewer.markdown import markdown_of

    run, console = run_of(default_path(), full_id(default_path(), args.run)), stdout_console()
    if args.json:
        print(run.to_json(indent=2))
    elif console.is_terminal:
        from rich.markdown import Markdown

        console.print(Markdown(markdown_of(run, as_written=False)))
    else:
        print(markdown_of(run), end="")
    return 0
