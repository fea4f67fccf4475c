"""Two runs side by side: their answers as a diff, their lists aligned step by step, cost and time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final, Literal, NamedTuple, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import rounds_inside
from wfdsl.errors import UsageError
from wfdsl.interpreter.record import Run
from wfdsl.render.html import StepPath
from wfdsl.viewer.page import Excerpts, page
from wfdsl.viewer.places import Place
from wfdsl.viewer.runs import facts_in, find_run

_WORD: Final = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_WORDS: Final = 4_000
"""Words of two texts up to which words are compared; longer texts are compared line by line. Our choice."""
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
    """The comparison of the two runs that are ticked.

    Raises:
        UsageError: there are not two.
    """
    ticked = request.query_params.getlist("run")
    if len(ticked) != 2:
        raise UsageError(f"tick two runs to compare (got {len(ticked)})")
    first, second = (find_run(request, run_id) for run_id in ticked)
    runs = (first[1], second[1])
    cut = Excerpts(2)
    return page(
        request,
        "compare.html",
        summaries=(first[0], second[0]),
        runs=runs,
        facts=_facts(request, runs),
        answer=diff(*(cut(run.answer).text for run in runs)),
        cut=cut,
        is_cut=any(cut(run.answer).left for run in runs),
        workflows=list(aligned(*runs)),
    )


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


def _workflows(run: Run) -> list[tuple[StepPath, Run]]:
    if run.workflow != ROOT_WORKFLOW:
        return [((), run)]
    return [((0, number), inside) for number, inside, _ in rounds_inside(run.steps[0])]


def _paired(first: Sequence[Place], second: Sequence[Place]) -> list[Pair]:
    """The steps in pairs: those of equal subtasks, and in order what lies between."""
    one, other = ([place.subtask for place in places] for places in (first, second))
    changes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return [Pair(*pair) for _, i, j, k, m in changes for pair in zip_longest(first[i:j], second[k:m])]


def diff(first: str, second: str) -> list[Part]:
    """Two texts as one: what only one of them has is marked."""
    one, other = _WORD.findall(first), _WORD.findall(second)
    if max(len(one), len(other)) > _MOST_WORDS:
        one, other = first.splitlines(keepends=True), second.splitlines(keepends=True)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
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
