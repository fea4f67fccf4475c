"""Two runs side by side: their answers as a diff, their lists aligned step by step, cost and time."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Literal, NamedTuple, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import rounds_inside
from wfdsl.interpreter.journal_reading import RunSummary
from wfdsl.interpreter.record import Run
from wfdsl.viewer.conversation import Excerpts
from wfdsl.viewer.page import page
from wfdsl.viewer.places import Path, Place
from wfdsl.viewer.runs import RunRecords, facts_in

_WORD: Final = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_WORDS: Final = 4_000
"""Words of two texts up to which words are compared; longer texts are compared line by line. Our choice."""
_MOST_LINES: Final = 5_000
"""Lines that are compared of longer texts. Our choice."""
_MOST_STEPS: Final = 300
"""Steps of a workflow up to which steps are aligned by what they say; beyond, by their place. Our choice."""
_MOST_CANDIDATES: Final = 30

Change: TypeAlias = Literal["same", "removed", "added"]


class Part(NamedTuple):
    """A part of two texts."""

    change: Change
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two steps that stand for each other; one of them may be missing."""

    first: Place | None
    second: Place | None

    @property
    def differences(self) -> tuple[str, ...]:
        """In what the two differ."""
        if self.first is None or self.second is None:
            return ("only in the second run",) if self.first is None else ("only in the first run",)
        one, other = self.first, self.second
        same = {
            "worker": one.worker == other.worker,
            "subtask": one.subtask == other.subtask,
            "access": one.run.workflow.sees(one.step.step) == other.run.workflow.sees(other.step.step),
            "reply": one.step.response == other.step.response,
        }
        return tuple(name for name, holds in same.items() if not holds)

    @property
    def subtask(self) -> Sequence[Part]:
        """The subtasks as a diff."""
        return diff(self.first.subtask if self.first else "", self.second.subtask if self.second else "")


@dataclass(frozen=True, slots=True)
class Aligned:
    """Two workflows, step by step."""

    title: str
    pairs: Sequence[Pair]


def compare(request: Request) -> Response:
    """The comparison of the runs `a` and `b`, or of the first two of `run`; without a second, a page to choose it."""
    query, records = request.query_params, request.app.state.records
    assert isinstance(records, RunRecords)
    ticked = [*query.getlist("run"), "", ""]
    a, b = query.get("a", ticked[0]).strip(), query.get("b", ticked[1]).strip()
    first = records.find(a)
    if not b:
        return page(request, "compare_choose.html", first=first[0], candidates=_candidates(request, first[0]))
    second = records.find(b)
    runs = (first[1], second[1])
    return page(
        request,
        "compare.html",
        summaries=(first[0], second[0]),
        runs=runs,
        facts=_facts(request, runs),
        answer=diff(*(Excerpts(2)(run.answer).text for run in runs)),
        cut=Excerpts(2),
        is_cut=any(Excerpts(2)(run.answer).left for run in runs),
        workflows=list(aligned(*runs)),
    )


def _candidates(request: Request, first: RunSummary) -> list[RunSummary]:
    """Runs to compare with: of the same question first, then the newest."""
    others = [run for run in request.app.state.index.runs() if run.id != first.id]
    return sorted(others, key=lambda run: run.title != first.title)[:_MOST_CANDIDATES]


def _facts(request: Request, runs: tuple[Run, Run]) -> list[tuple[str, str, str]]:
    """What is known of both runs, a row for each figure."""
    found = [{fact.label: fact.value for fact in facts_in(request, run)} for run in runs]
    labels = dict.fromkeys([*found[0], *found[1]])
    return [(label, found[0].get(label, ""), found[1].get(label, "")) for label in labels]


def aligned(first: Run, second: Run) -> Iterator[Aligned]:
    """The workflows of two runs in pairs: the rounds of a Conductor, or the one workflow that was given."""
    for number, (one, other) in enumerate(zip_longest(_workflows(first), _workflows(second))):
        title = "Workflow" if not number else f"Round {number}"
        steps = [
            [] if each is None else [Place((*each[0], step.step), each[1], step) for step in each[1].steps]
            for each in (one, other)
        ]
        yield Aligned(title, _paired(*steps))


def _workflows(run: Run) -> list[tuple[Path, Run]]:
    if run.workflow != ROOT_WORKFLOW:
        return [((), run)]
    return [((0, number), inside) for number, inside, _ in rounds_inside(run.steps[0])]


def _paired(first: Sequence[Place], second: Sequence[Place]) -> list[Pair]:
    """The pairs of steps with the most in common, in order (Needleman and Wunsch, 1970, with free gaps)."""
    if max(len(first), len(second)) > _MOST_STEPS:
        return [Pair(*pair) for pair in zip_longest(first, second)]
    words = [[set(_WORD.findall(place.subtask.casefold())) for place in places] for places in (first, second)]
    best = [[0.0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i in range(len(first) - 1, -1, -1):
        for j in range(len(second) - 1, -1, -1):
            alike = _alike(first[i], second[j], words[0][i], words[1][j])
            best[i][j] = max(best[i + 1][j + 1] + alike, best[i + 1][j], best[i][j + 1])
    return list(_path(first, second, best))


def _path(first: Sequence[Place], second: Sequence[Place], best: list[list[float]]) -> Iterator[Pair]:
    i = j = 0
    while i < len(first) and j < len(second):
        if best[i][j] > max(best[i + 1][j], best[i][j + 1]):
            yield Pair(first[i], second[j])
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            yield Pair(first[i], None)
            i += 1
        else:
            yield Pair(None, second[j])
            j += 1
    yield from (Pair(place, None) for place in first[i:])
    yield from (Pair(None, place) for place in second[j:])


def _alike(one: Place, other: Place, first: set[str], second: set[str]) -> float:
    """How much two steps have in common, above 0: the words of their subtasks, then their workers."""
    shared = len(first & second) / max(len(first | second), 1)
    return 0.05 + shared + 0.5 * (one.worker == other.worker)


def diff(first: str, second: str) -> list[Part]:
    """Two texts as one: what only one of them has is marked."""
    one, other = _WORD.findall(first), _WORD.findall(second)
    if max(len(one), len(other)) > _MOST_WORDS:
        one, other = first.splitlines(keepends=True)[:_MOST_LINES], second.splitlines(keepends=True)[:_MOST_LINES]
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return list(_parts(matcher.get_opcodes(), one, other))


def _parts(changes: Iterable[tuple[str, int, int, int, int]], one: list[str], other: list[str]) -> Iterator[Part]:
    for kind, start, end, from_, to in changes:
        if kind == "equal":
            yield Part("same", "".join(one[start:end]))
            continue
        if end > start:
            yield Part("removed", "".join(one[start:end]))
        if to > from_:
            yield Part("added", "".join(other[from_:to]))
