"""Consoles of rich on the standard streams, for tables, bars and colours; only commands that draw import it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from wfdsl.cli.display.streams import styled, visible


def stdout_console() -> Console:
    """A console on standard output."""
    return SafeConsole(file=styled(sys.stdout))


def stderr_console(**options: Any) -> Console:
    """A console on standard error."""
    return SafeConsole(file=styled(sys.stderr), **options)


class SafeConsole(Console):
    """Draws texts as a terminal may show them; rich lets escape sequences in them pass."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is drawn; the control segments are rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))
