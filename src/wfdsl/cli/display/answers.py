"""The answer of a run on standard output: as it comes on a terminal, else when the run is done."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol

from wfdsl.cli.display.streams import OutputFailed, print_exactly
from wfdsl.interpreter.events import Delta, Event, FellBack, Path, Retried, RunStarted
from wfdsl.interpreter.record import Run


class Display(AbstractContextManager["Display"], Protocol):
    """Shows a run's events, from the beginning of a `with` block to its end; the block may be entered again."""

    def __call__(self, event: Event) -> None:
        """Show an event."""
        ...

    def finish(self) -> None:
        """Say what is left to say after an answer that was written outside of the block."""
        ...


class NoDisplay:
    """Shows nothing (`--quiet`)."""

    def __enter__(self) -> NoDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, event: Event) -> None:
        """Show nothing."""

    def finish(self) -> None:
        """Say nothing."""


class StreamedAnswer:
    """A display that makes way for the answer, which is written to standard output while a worker writes it.

    The answer is that of the last step; of a Conductor's rounds it is each round's, since one may be the last.
    """

    def __init__(self, display: Display) -> None:
        self._display = display
        self._steps: set[Path] = set()
        self._written = ""

    def __enter__(self) -> StreamedAnswer:
        self._display.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._written:
            print(flush=True)
            self.finish()
        else:
            self._display.__exit__(kind, error, trace)

    def __call__(self, event: Event) -> None:
        """Write a piece of the answer, or show the event."""
        match event:
            case RunStarted() if not event.path or event.path[:-1] in self._steps:
                self._steps.add((*event.path, len(event.workflow) - 1))
                if self._written:
                    self._begin_again("revised")
            case Delta() if event.path in self._steps:
                self._write(event.text)
            case Retried() | FellBack() if event.path in self._steps and self._written:
                self._begin_again(event.reason)
        self._display(event)

    def finish(self) -> None:
        """Let the display say the rest."""
        self._display.finish()

    def has_written(self, answer: str) -> bool:
        """Whether this answer is what standard output shows."""
        return bool(self._written) and self._written == answer

    def _write(self, text: str) -> None:
        if not self._written:
            self._display.__exit__(None, None, None)
        self._written += text
        print(text, end="", flush=True)

    def _begin_again(self, why: str) -> None:
        print(flush=True)
        print(f"the answer begins again: {why}", file=sys.stderr)
        self._written = ""
        self._display.__enter__()


def print_result(run: Run, json: str | None, display: Display | None = None) -> None:
    """What a run came to, on standard output: this JSON, or its answer exactly as it is, unless it is there already.

    Raises:
        OutputFailed: it cannot be written.
    """
    if json is None and isinstance(display, StreamedAnswer) and display.has_written(str(run.answer)):
        return
    try:
        if json is None:
            print_exactly(f"{run.answer}\n")
        else:
            print(json, flush=True)
    except OutputFailed as failure:
        failure.advice = f"`wfdsl runs resume {run.id}` prints the answer"
        raise
