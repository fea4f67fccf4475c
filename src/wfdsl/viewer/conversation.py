"""A run as a conversation: the question, what the Conductor wrote, each step with its reply, and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from wfdsl.api import analyze
from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import Completion, RoundLog, completion_of, remarks_on, rounds_inside, rounds_of
from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.journal_reading import Attempt
from wfdsl.interpreter.record import Run
from wfdsl.language.check import CheckConfig
from wfdsl.protocols import Message
from wfdsl.render.runs import RESULTS, ending_of
from wfdsl.viewer.completion_text import Line, lines_of
from wfdsl.viewer.places import Path, Place, dotted, places

_CHARS: Final = 300_000
"""Characters of texts on one page, so that a page stays below a megabyte. Our choice."""
_MOST, _LEAST = 20_000, 300
"""The most and the fewest characters that are shown of one text. Our choice."""


@dataclass(frozen=True, slots=True)
class Written:
    """One text of the Conductor."""

    label: str
    lines: Sequence[Line]
    is_last: bool
    is_wrong: bool
    """Whether something was wrong with it."""


Unlogged: TypeAlias = Mapping[Path, Sequence[Completion]]
"""What Conductors wrote in a run that has no log of its rounds yet, by the paths of the rounds."""


def completions_in(replies: Iterable[Attempt]) -> Unlogged:
    """What Conductors wrote, from the replies in the journal, read as it is when a run is put together from them."""
    found: dict[Path, list[Completion]] = {}
    for each in replies:
        if each.path[-1] == OWN_STEP and each.reply is not None:
            checked = analyze(each.reply.text, CheckConfig(profile="lenient", max_steps=None, recursion=True))
            found.setdefault(each.path[:-1], []).append(completion_of(each.reply, checked))
    return found


@dataclass(frozen=True, slots=True)
class Section:
    """A workflow that ran, or a round in which nothing did."""

    id: str
    title: str
    remarks: Sequence[str]
    written: Sequence[Written]
    steps: Sequence[Place]
    path: Path
    unlogged: Unlogged = field(default_factory=dict)

    def inside(self, place: Place) -> list[Section]:
        """What ran inside a step."""
        return sections_inside(place, self.unlogged)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text, or the beginning of a long one."""

    text: str
    left: int
    """How many characters are not shown."""


class Excerpts:
    """Shows the beginnings of texts, so that all of them fit on a page."""

    def __init__(self, texts: int, *, most: int = _MOST) -> None:
        self._limit = max(_LEAST, min(most, _CHARS // max(texts, 1)))

    def __call__(self, text: str | None) -> Excerpt:
        """The text, as much of it as has room."""
        text = text or ""
        left = len(text) - self._limit
        return Excerpt(text, 0) if left <= 0 else Excerpt(text[: self._limit], left)


def excerpts_for(run: Run) -> Excerpts:
    """For the texts of a conversation: question, answer, and a subtask and a reply for each step."""
    return Excerpts(2 + 2 * sum(1 for _ in places(run)))


def messages_of(question: Question | tuple[Message, ...]) -> list[Message]:
    """The messages of a question; a text is one of the user's."""
    return [{"role": "user", "content": question}] if isinstance(question, str) else list(question)


def sections_of(run: Run, unlogged: Unlogged = MappingProxyType({})) -> list[Section]:
    """The workflows of a run: the rounds of a Conductor, or the one workflow that was given."""
    if run.workflow == ROOT_WORKFLOW:
        found = sections_inside(Place((0,), run, run.steps[0]), unlogged)
        return [*found, *(_log_only(log, (0,), "") for log in rounds_of([run]))]
    steps = [Place((step.step,), run, step) for step in run.steps]
    return [Section("workflow", "Steps", (), (), steps, (), unlogged)]


def sections_inside(place: Place, unlogged: Unlogged) -> list[Section]:
    """The rounds that ran inside a Conductor's step."""
    found = []
    left = {path: texts for path, texts in unlogged.items() if path[:-1] == place.path}
    prefix = "" if place.is_root else f"{place.name}, "
    for number, run, logs in rounds_inside(place.step):
        at = (*place.path, number)
        steps = [Place((*at, step.step), run, step) for step in run.steps]
        title = f"{prefix}round {number}: {ending_of(run)}"
        remarks = [*(remark for log in logs[:1] for remark in remarks_on(log)), *filter(None, [run.error])]
        texts = left.pop(at, ())
        written = _written(logs[0].completions if logs else texts)
        found.append(Section(f"round={dotted(at)}", title, remarks, written, steps, at, unlogged))
        found += [_log_only(log, place.path, prefix) for log in logs[1:]]
    for path, texts in left.items():
        found.append(Section(f"round={dotted(path)}", f"{prefix}round {path[-1]}", (), _written(texts), (), path))
    return found


def _log_only(log: RoundLog, path: Path, prefix: str) -> Section:
    at = (*path, log.round)
    title = f"{prefix}round {log.round}: {RESULTS[log.result]}"
    return Section(f"round={dotted(at)}", title, remarks_on(log), _written(log.completions), (), at)


def _written(completions: Sequence[Completion]) -> list[Written]:
    last = len(completions) - 1
    return [
        Written(_label(each, at), lines_of(each), at == last, bool(each.problems))
        for at, each in enumerate(completions)
    ]


def _label(completion: Completion, at: int) -> str:
    what = "What the Conductor wrote" if not at else f"Asked again, time {at}"
    return f"{what}: {completion.reading}"
