"""A run as bars over time: when each step waited, failed, was asked again and was answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.journal import Attempt
from wfdsl.interpreter.record import Run
from wfdsl.render.html import StepPath
from wfdsl.render.status import duration
from wfdsl.viewer.places import Place, places

Kind: TypeAlias = Literal["wait", "work", "running", "retry", "lost", "inside", "between"]
"""What a part of a bar stands for: waiting, a call that counted, one in flight, one that failed, one whose result is
not known, a Conductor's step, whose calls have bars of their own, or time of the run in which no step did anything."""
_LONGEST_GAP: Final = 0.1
"""A gap in which nothing happened is squeezed if it takes more than this part of the whole. Our choice."""
_SQUEEZED: Final = 0.03
"""The part of the width that a squeezed gap takes. Our choice."""
_FEWEST_S: Final = 2.0
"""Seconds below which a gap is never squeezed. Our choice."""


class Part(NamedTuple):
    """A part of a bar, in seconds since 1970."""

    kind: Kind
    start: float
    end: float


class Drawn(NamedTuple):
    """A part of a bar, in percent of the width."""

    kind: Kind
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Row:
    """A step, or a completion of a Conductor, and its bar."""

    id: str
    """The step's path; of a completion, that of its step."""
    name: str
    worker: str
    level: int
    parts: Sequence[Drawn]
    words: str
    """The bar for those who do not see it."""


class Gap(NamedTuple):
    """A time in which nothing happened, which is not drawn to scale."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All bars on one scale."""

    rows: Sequence[Row]
    gaps: Sequence[Gap]
    seconds: float
    """The whole time, gaps included: that of the run."""
    between: float
    """How much of it no step did anything, in seconds: while the process started, imported and wrote."""


def timeline_of(run: Run, attempts: Iterable[Attempt], now: float) -> Timeline:
    """The bars of a run.

    `now` is where the bars of calls in flight end; those of a run that has stopped, whose result is lost, end with the
    last that is known of the run.
    """
    if run.status != "running":
        attempts = [_lost_if_open(attempt) for attempt in attempts]
        now = max((attempt.finished or attempt.started for attempt in attempts), default=now)
    by_path: dict[StepPath, list[Attempt]] = {}
    for attempt in attempts:
        by_path.setdefault(attempt.path, []).append(attempt)
    found: list[tuple[StepPath, str, str, str, list[Part]]] = []
    for place in places(run):
        found.append((place.path, place.id, place.name, place.worker, _parts(place, by_path.get(place.path, []), now)))
        for path, calls in by_path.items():  # the Conductor's own, a row for each round
            if path[-1] == OWN_STEP and path[:-2] == place.path:
                name = f"writes round {path[-2]}"
                found.append((path, place.id, name, calls[0].worker, [_part(call, now) for call in calls]))
    found.sort(key=lambda each: each[0])  # so a completion comes before the steps that it wrote
    busy = [part for *_, parts in found for part in parts if part.kind != "inside"]
    scale = _Scale(busy, run.started, run.finished or max([now, *(part.end for part in busy)]))
    between = [scale.drawn(Part("between", start, end)) for start, end in scale.idle]
    rows = [Row("", "between calls", "", 0, between, f"no call for {duration(scale.idle_seconds)}")]
    for path, step, name, worker, parts in found:
        rows.append(Row(step, name, worker, len(path) // 2, [scale.drawn(part) for part in parts], _words(parts)))
    return Timeline(rows, scale.gaps, scale.seconds, scale.idle_seconds)


def _lost_if_open(attempt: Attempt) -> Attempt:
    return attempt._replace(status="lost") if attempt.status == "started" else attempt


def _parts(place: Place, attempts: Sequence[Attempt], now: float) -> list[Part]:
    step = place.step
    if step.nested:
        return [] if step.started is None else [Part("inside", step.started, step.finished or now)]
    found = []
    at = None if step.replayed else step.started
    for attempt in attempts:
        if at is not None and attempt.started > at:
            found.append(Part("wait", at, attempt.started))
        found.append(_part(attempt, now))
        at = found[-1].end
    return found


def _part(attempt: Attempt, now: float) -> Part:
    return Part(_KINDS.get(attempt.status, "retry"), attempt.started, attempt.finished or now)


_KINDS: Final[dict[str, Kind]] = {"finished": "work", "started": "running", "duplicate": "work", "lost": "lost"}


def _words(parts: Sequence[Part]) -> str:
    return ", ".join(map(_words_of, parts)) or "no time is known"


def _words_of(part: Part) -> str:
    if part.kind == "lost" and part.end == part.start:
        return "result not known"
    return f"{_WORDS[part.kind]} {duration(part.end - part.start)}"


_WORDS: Final[dict[Kind, str]] = {
    "wait": "waited",
    "work": "worked",
    "running": "running for",
    "retry": "failed after",
    "lost": "result not known after",
    "inside": "took",
    "between": "nothing for",
}


class _Scale:
    """Where a time is on the page: in percent of the width, with long gaps squeezed."""

    def __init__(self, parts: Sequence[Part], start: float, end: float) -> None:
        """The parts in which steps did something, of a run that took from `start` to `end`."""
        busy = _merged(parts)
        self._start = min([start, *(begun for begun, _ in busy)])
        self.seconds = max([end, *(over for _, over in busy)]) - self._start
        edges = [self._start, *(at for part in busy for at in part), self._start + self.seconds]
        self.idle = [(over, begun) for over, begun in zip(edges[::2], edges[1::2], strict=True) if begun > over]
        self.idle_seconds = sum(begun - over for over, begun in self.idle)
        self._long = [gap for gap in self.idle if gap[1] - gap[0] > max(_LONGEST_GAP * self.seconds, _FEWEST_S)]
        kept = self.seconds - sum(end - start for start, end in self._long)
        room = 1.0 - _SQUEEZED * len(self._long)
        self._per_second = 100.0 * max(room, 0.1) / kept if kept > 0 else 0.0
        self.gaps = [Gap(self.at(start), duration(end - start)) for start, end in self._long]

    def drawn(self, part: Part) -> Drawn:
        """A part, wide enough to be seen."""
        x = self.at(part.start)
        width = max(self.at(part.end) - x, 0.3)
        return Drawn(part.kind, round(min(x, 99.7), 3), round(width, 3))

    def at(self, when: float) -> float:
        """The place of a time."""
        taken, width = 0.0, 0.0
        for start, end in self._long:
            if when >= end:
                taken += end - start
                width += 100.0 * _SQUEEZED
            elif when > start:
                taken += when - start
                width += 100.0 * _SQUEEZED * (when - start) / (end - start)
        return min(max((when - self._start - taken) * self._per_second + width, 0.0), 100.0)


def _merged(parts: Sequence[Part]) -> list[tuple[float, float]]:
    """The times in which something happened, in order."""
    found: list[tuple[float, float]] = []
    for start, end in sorted((part.start, part.end) for part in parts):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
