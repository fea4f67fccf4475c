"""A run as texts to read: its rounds, each step with what its worker saw, its reply, time, tokens and cost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import Completion, RoundLog, rounds_inside, rounds_of
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.protocols import Message
from wfdsl.render.html import Fact, Link, Page, Said, Section, StepPath, StepText, Written, dotted
from wfdsl.render.model import Note, Options
from wfdsl.render.pictures import picture_of
from wfdsl.render.runs import RESULTS, ending_of, notes_on
from wfdsl.render.status import dollars, duration
from wfdsl.render.svg import svg_of
from wfdsl.render.text import counted

Unlogged: TypeAlias = Mapping[StepPath, Sequence[Completion]]
"""What Conductors wrote in a run that has no log of its rounds yet, by the paths of the rounds."""


def page_of_value(run: Run, options: Options) -> Page:
    """The page of a run."""
    picture = picture_of(run, **options)
    return Page(
        title=picture.title,
        svg=svg_of(picture),
        facts=tuple(facts_of_run(run)),
        notes=picture.notes,
        question=said_in(run.question),
        answer=run.answer,
        sections=sections_of(run),
    )


def said_in(messages: str | Iterable[Message]) -> tuple[Said, ...]:
    """A question, or the messages of a worker, with the tools that they call."""
    return (Said("", messages),) if isinstance(messages, str) else tuple(_said(messages))


def _said(messages: Iterable[Message]) -> Iterator[Said]:
    for message in messages:
        calls = message.get("tool_calls", ())
        if message["content"] or not calls:
            yield Said(message["role"], message["content"])
        yield from (Said(f"called {call['name']}", call["arguments"], is_call=True) for call in calls)


def facts_of_run(run: Run) -> Iterator[Fact]:
    """What is known of a run: status, time, tokens, cost."""
    yield Fact("status", ending_of(run))
    yield Fact("started", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started)))
    if run.seconds is not None:
        yield Fact("time", duration(run.seconds))
    yield Fact("tokens", f"{run.usage.input_tokens:,} in, {run.usage.output_tokens:,} out")
    yield Fact("paid", "price not known" if run.paid_usd is None else dollars(run.paid_usd))
    if run.charged is not None:
        yield Fact("calls", f"{run.charged.calls:,}")
    if run.pool:
        yield Fact("pool", run.pool)


def sections_of(run: Run, unlogged: Unlogged = MappingProxyType({})) -> tuple[Section, ...]:
    """The workflows of a run: the rounds of a Conductor, or the one workflow that was given."""
    if run.workflow != ROOT_WORKFLOW:
        return (Section(title="Steps", steps=_steps(run, (), unlogged)),)
    logs = (_log_only(log, (0,), "") for log in rounds_of([run]))
    return (*_rounds(run, run.steps[0], (0,), unlogged), *logs)


def _rounds(run: Run, step: StepRecord, path: StepPath, unlogged: Unlogged) -> Iterator[Section]:
    """The rounds inside a step."""
    where = "" if run.workflow == ROOT_WORKFLOW else f"{run.name_of(step.step)}, "
    left = {at: texts for at, texts in unlogged.items() if at[:-1] == path}
    for number, nested, logs in rounds_inside(step):
        at = (*path, number)
        notes = [note for log in logs[:1] for note in notes_on(log)]
        texts = left.pop(at, ())
        yield Section(
            path=at,
            title=f"{where}round {number}: {ending_of(nested)}",
            notes=(*notes, *([Note(nested.error, is_bad=True)] if nested.error else [])),
            written=tuple(_written(logs[0].completions if logs else texts)),
            steps=_steps(nested, at, unlogged),
        )
        yield from (_log_only(log, path, where) for log in logs[1:])
    for at, texts in left.items():
        yield Section(path=at, title=f"{where}round {at[-1]}", written=tuple(_written(texts)))


def _log_only(log: RoundLog, path: StepPath, where: str) -> Section:
    title = f"{where}round {log.round}: {RESULTS[log.result]}"
    return Section(
        path=(*path, log.round), title=title, notes=tuple(notes_on(log)), written=tuple(_written(log.completions))
    )


def _written(completions: Sequence[Completion]) -> Iterator[Written]:
    for at, each in enumerate(completions):
        what = f"Asked again, time {at}" if at else "What the Conductor wrote"
        yield Written(f"{what}: {each.reading}", each.text, each.problems)


def _steps(run: Run, path: StepPath, unlogged: Unlogged) -> tuple[StepText, ...]:
    return tuple(_step(run, step, (*path, step.step), unlogged) for step in run.steps)


def _step(run: Run, step: StepRecord, path: StepPath, unlogged: Unlogged) -> StepText:
    seen = run.workflow.sees(step.step)
    return StepText(
        path=path,
        name=run.name_of(step.step),
        worker=step.worker_name or f"worker {step.worker}",
        subtask=run.workflow[step.step].subtask,
        status=step.status,
        facts=tuple(facts_of_step(step)),
        sees=tuple(Link(run.name_of(other), dotted((*path[:-1], other))) for other in seen),
        messages=said_in(step.messages),
        reply=step.response,
        error=step.error,
        inside=tuple(_rounds(run, step, path, unlogged)),
    )


def facts_of_step(step: StepRecord) -> Iterator[Fact]:
    """What is known of a step: time, waits, tokens, cost, and what was unusual."""
    if step.seconds is not None:
        yield Fact("time", duration(step.seconds))
    if step.queue_s >= 0.001:
        yield Fact("queued", f"{duration(step.queue_s)} queued")
    if step.retries:
        yield Fact("retries", counted(step.retries, "failed attempt"))
    if step.usage.total_tokens:
        yield Fact("tokens", f"{step.usage.input_tokens:,} + {step.usage.output_tokens:,} tokens")
    if step.list_usd is None:
        yield Fact("cost", "price not known")
    elif step.list_usd:
        yield Fact("cost", dollars(step.list_usd))
    if step.model:
        yield Fact("model", step.model)
    if step.answered_by is not None:
        yield Fact("answered by", f"fallback worker {step.answered_by}")
    if step.finish not in (None, "stop"):
        own = f" ({step.ending})" if step.ending and step.ending != step.finish else ""
        yield Fact("ended by", f"reply ended by: {step.finish}{own}")
    if step.replayed:
        yield Fact("source", "from the journal")
