"""Which display shows a run, by the options of its command."""

from __future__ import annotations

import argparse
import sys

from wfdsl.cli.display.answers import Display, NoDisplay, StreamedAnswer
from wfdsl.cli.display.consoles import stderr_console
from wfdsl.cli.display.live import PlainDisplay, TerminalDisplay
from wfdsl.cli.display.rounds import Rounds
from wfdsl.cli.display.step_texts import StepTexts
from wfdsl.workers.entry import SIMULATED
from wfdsl.workers.pool import Pool


def display_for(args: argparse.Namespace, pool: Pool | None = None) -> Display:
    """What shows a run: a live table if standard error is a terminal, plain lines otherwise, nothing if `--quiet`.

    With `--steps`, workflows are drawn and each step's texts are printed. Otherwise, if standard output is a terminal,
    it shows the answer as it comes.
    """
    display: Display
    rounds = Rounds({} if pool is None else pool.labels)
    simulated = pool is not None and bool(pool.tagged(SIMULATED))
    if args.quiet:
        display = NoDisplay()
    elif args.steps:
        return StepTexts(sys.stderr, rounds, simulated=simulated)
    elif sys.stderr.isatty():
        display = TerminalDisplay(stderr_console(), rounds, simulated=simulated)
    else:
        display = PlainDisplay(sys.stderr, rounds, simulated=simulated)
    return StreamedAnswer(display) if sys.stdout.isatty() and not args.json else display
