"""The log of a Conductor's rounds, kept in the run record: what was written, how it was read, and the result.

The run of a round holds the log of its round in `settings["conductor"]`, a list; a later round that ran nothing adds
its log there too. So a record from the journal is complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from wfdsl.api import Checked
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.language.codes import CODES
from wfdsl.protocols import Reply

KEY: Final = "conductor"
NO_WORKFLOW: Final = "no valid workflow, and no default workflow"
"""The reason of a round in which nothing could be run."""
UNWRITTEN: Final = "no valid workflow in "
"""What the failure of such a Conductor begins with."""
_MOST_PROBLEMS: Final = 5
"""Errors that a re-ask carries back. Our choice: later ones are often consequences of the first."""
_MOST_PROBLEM_CHARS: Final = 300

Reading: TypeAlias = Literal["valid", "repaired", "passthrough", "invalid"]
RoundResult: TypeAlias = Literal[
    "ran", "ran-default", "kept", "kept-over-limit", "kept-invalid", "kept-failed", "failed"
]
"""The result of a round: its workflow ran; the default workflow ran instead; three empty lists kept the previous
answer; a revision was over the limit of calls, never became valid, or a call of it failed, so that the previous answer
is kept; or nothing could be run at all."""


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
class RoundLog:
    """One round: what the Conductor wrote, and the result."""

    round: int
    """From 0; each later one is a revision."""
    result: RoundResult
    completions: tuple[Completion, ...]
    """The last one is the one that counted; those before it were asked for again. None if the first call failed."""
    prompt: Mapping[str, Any]
    """Name, version, examples and hash of the template set."""
    numbering: tuple[tuple[int, int], ...]
    """Pairs: the number of a worker as the Conductor was shown it, and its index in the pool."""
    reason: str = ""
    """Why a revision was not run."""

    @property
    def reasks(self) -> int:
        """How often the Conductor was asked to fix its workflow."""
        return max(len(self.completions) - 1, 0)

    def to_dict(self) -> dict[str, Any]:
        """The log as plain values, equal to what JSON gives back."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RoundLog:
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
    errors = _lines(checked, errors_only=True)
    more = [f"and {len(errors) - _MOST_PROBLEMS} more"] if len(errors) > _MOST_PROBLEMS else []
    return "\n".join(f"- {line}" for line in [*errors[:_MOST_PROBLEMS], *more])


def add_round(run: Run, log: RoundLog) -> Run:
    """The run with the log of a further round."""
    return replace(run, settings={**run.settings, KEY: [*run.settings.get(KEY, ()), log.to_dict()]})


def rounds_of(runs: Iterable[Run]) -> tuple[RoundLog, ...]:
    """The logs of the rounds that runs hold, in order."""
    return tuple(RoundLog.from_dict(plain) for run in runs for plain in run.settings.get(KEY, ()))


def rounds_inside(step: StepRecord) -> Iterator[tuple[int, Run, tuple[RoundLog, ...]]]:
    """The rounds of a Conductor's step that ran something, in order: the number, from 0; the run; the logs of this
    round and of later ones that ran nothing.
    """
    for place, run in enumerate(step.nested):
        logs = rounds_of([run])
        yield logs[0].round if logs else place, run, logs


def gave_up(run: Run) -> bool:
    """Whether a Conductor wrote no valid workflow, so that the run, if resumed, would read the same completions."""
    return any(plain["reason"] == NO_WORKFLOW for plain in run.settings.get(KEY, ()))


def node_gave_up(run: Run) -> bool:
    """Whether a Conductor node of a run of another workflow wrote none that is valid; kept, it would be read again."""
    return not gave_up(run) and any(UNWRITTEN in step.error for step in run.steps)


def remarks_on(log: RoundLog) -> list[str]:
    """What was unusual in a round, a line each: re-asks, repairs, and what was not run."""
    problems = "; ".join(log.completions[-1].problems) if log.completions else ""
    lines = [f"asked again {log.reasks} {'time' if log.reasks == 1 else 'times'}"] if log.reasks else []
    if log.completions and log.completions[-1].reading == "repaired":
        lines.append(f"the completion was repaired: {problems}")
    if log.result == "ran-default":
        lines.append(f"no completion was valid, so the default workflow ran: {problems}")
    if log.result == "kept":
        lines.append("the previous answer was kept")
    if log.reason:
        ending = "there is no answer" if log.result == "failed" else "the previous answer is kept"
        lines.append(f"{ending}: {log.reason}")
    return lines


def _lines(checked: Checked, *, errors_only: bool = False) -> list[str]:
    lines = []
    for found in checked.diagnostics:
        if found.is_error or (not errors_only and CODES[found.code].kind == "repair"):
            line, _ = checked.source.position(found.span.start)
            text = f"line {line}: {found.message}{f' ({found.help})' if found.help else ''} [{found.code}]"
            lines.append(text if len(text) <= _MOST_PROBLEM_CHARS else f"{text[: _MOST_PROBLEM_CHARS - 1]}…")
    return lines
