"""What happened in each round of a Conductor, kept in the run record.

The run of a round holds the note of its round in `settings["conductor"]`, a list; a later round that ran nothing adds
its note there too. So a record from the journal tells the whole story.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from wfdsl.language.diagnostics.codes import CODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wfdsl.api import Checked
    from wfdsl.interpreter.record import Run
    from wfdsl.protocols import Reply

KEY: Final = "conductor"
_MOST_PROBLEMS: Final = 5
"""Errors that a re-ask carries back. Our choice: later ones are often consequences of the first."""
_MOST_PROBLEM_CHARS: Final = 300

Reading: TypeAlias = Literal["valid", "repaired", "passthrough", "invalid"]
Outcome: TypeAlias = Literal["ran", "ran-default", "kept", "kept-over-limit", "kept-invalid", "failed"]
"""What a round came to: its workflow ran; the default workflow ran in its place; three empty lists kept the answer
before; a revision was over the limit of calls, or never became valid, so that the answer before stands; or nothing
could be run at all."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One text that the Conductor wrote, and how it was read."""

    text: str
    reading: Reading
    problems: tuple[str, ...] = ()
    """Errors and repairs, a line each, with the code."""
    finish: str = "stop"
    """How the reply ended."""


@dataclass(frozen=True, slots=True)
class RoundNote:
    """One round: what the Conductor wrote, and what came of it."""

    round: int
    """From 0; each later one is a revision."""
    outcome: Outcome
    completions: tuple[Completion, ...]
    """The last one is the one that counted; those before it were asked for again."""
    prompt: Mapping[str, Any]
    """Name, version, examples and hash of the template set."""
    numbering: tuple[tuple[int, int], ...]
    """Pairs: an ordinal as the Conductor was shown it, and the pool's."""
    reason: str = ""
    """Why a revision was not run."""

    @property
    def reasks(self) -> int:
        """How often the Conductor was asked to mend its workflow."""
        return len(self.completions) - 1

    def to_dict(self) -> dict[str, Any]:
        """The note as plain values, equal to what JSON gives back."""
        plain = asdict(self)
        plain["completions"] = [{**each, "problems": list(each["problems"])} for each in plain["completions"]]
        plain["numbering"] = [list(pair) for pair in self.numbering]
        plain["prompt"] = dict(self.prompt)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RoundNote:
        """The inverse of `to_dict`."""
        completions = tuple(
            Completion(**{**each, "problems": tuple(each["problems"])}) for each in plain["completions"]
        )
        numbering = tuple((shown, true) for shown, true in plain["numbering"])
        return cls(**{**plain, "completions": completions, "numbering": numbering})


def completion_of(reply: Reply, checked: Checked) -> Completion:
    """What to keep of a completion."""
    repairs = any(CODES[found.code].kind == "repair" for found in checked.diagnostics)
    reading: Reading = "invalid"
    if checked.ok:
        reading = "passthrough" if checked.passthrough else "repaired" if repairs else "valid"
    return Completion(reply.text, reading, tuple(_lines(checked)), reply.finish)


def problems_of(checked: Checked) -> str:
    """The errors of a completion in short, as a re-ask carries them back."""
    errors = [found for found in checked.diagnostics if found.is_error]
    lines = [f"- {line}" for line in _lines(checked, errors_only=True)[:_MOST_PROBLEMS]]
    if len(errors) > _MOST_PROBLEMS:
        lines.append(f"- and {len(errors) - _MOST_PROBLEMS} more")
    return "\n".join(lines)


def add_note(run: Run, note: RoundNote) -> Run:
    """The run with a further note."""
    return replace(run, settings={**run.settings, KEY: [*run.settings.get(KEY, ()), note.to_dict()]})


def notes_of(runs: Iterable[Run]) -> tuple[RoundNote, ...]:
    """The notes that runs hold, in order."""
    return tuple(RoundNote.from_dict(plain) for run in runs for plain in run.settings.get(KEY, ()))


def remarks_on(note: RoundNote) -> list[str]:
    """What was out of the ordinary in a round, a line each: re-asks, repairs, and what was not run."""
    where, last = f"round {note.round}", note.completions[-1]
    lines = [f"{where}: asked again {note.reasks} {'time' if note.reasks == 1 else 'times'}"] if note.reasks else []
    if last.reading == "repaired":
        lines.append(f"{where}: the completion was repaired: {'; '.join(last.problems)}")
    if note.outcome == "ran-default":
        lines.append(f"{where}: no completion was valid, so the default workflow ran: {'; '.join(last.problems)}")
    if note.outcome == "kept":
        lines.append(f"{where}: the answer was kept")
    if note.outcome in ("kept-over-limit", "kept-invalid", "failed"):
        ending = "there is no answer" if note.outcome == "failed" else "the answer before stands"
        lines.append(f"{where}: {ending}: {note.reason}")
    return lines


def _lines(checked: Checked, *, errors_only: bool = False) -> list[str]:
    lines = []
    for found in checked.diagnostics:
        if found.is_error or (not errors_only and CODES[found.code].kind == "repair"):
            line, _ = checked.source.position(found.span.start)
            text = f"line {line}: {found.message}{f' ({found.help})' if found.help else ''} [{found.code}]"
            lines.append(text if len(text) <= _MOST_PROBLEM_CHARS else f"{text[: _MOST_PROBLEM_CHARS - 1]}…")
    return lines
