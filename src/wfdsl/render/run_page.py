"""The HTML page of a run: each step with what its worker saw, its reply, time, tokens and cost."""

from __future__ import annotations

import time
from collections.abc import Iterator

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import Completion, RoundLog, rounds_inside
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.protocols import Message
from wfdsl.render.html import Fact, Labelled, Link, Page, Section, Span, StepText, anchor_of, dotted
from wfdsl.render.model import Options
from wfdsl.render.pictures import picture_of
from wfdsl.render.runs import ending_of, round_panels
from wfdsl.render.status import dollars, duration
from wfdsl.render.svg import svg_of
from wfdsl.render.text import counted


def page_of_value(run: Run, options: Options) -> Page:
    """The page of a run."""
    picture = picture_of(run, **options)
    if run.workflow == ROOT_WORKFLOW:
        sections = tuple(_round_sections(run, run.steps[0], (0,), run))
    else:
        sections = (Section(anchor="workflow", title="Steps", steps=_steps(run, (), run)),)
    return Page(
        title=picture.title,
        svg=svg_of(picture),
        facts=tuple(facts_of_run(run)),
        notes=picture.notes,
        question=_messages(run.question),
        answer=run.answer,
        sections=sections,
    )


def _messages(question: object) -> tuple[Labelled, ...]:
    if isinstance(question, str):
        return (Labelled("", question),)
    assert isinstance(question, tuple)  # a question is a text or messages
    return tuple(each for message in question for each in _said(message))


def _said(message: Message) -> Iterator[Labelled]:
    """A message, and the tools that it calls."""
    calls = message.get("tool_calls", ())
    if message["content"] or not calls:
        yield Labelled(message["role"], message["content"])
    for call in calls:
        yield Labelled(f"called {call['name']}", call["arguments"])


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


def _round_sections(run: Run, step: StepRecord, path: tuple[int, ...], whole: Run) -> Iterator[Section]:
    """The rounds inside a step; each picture of a round has its section."""
    titles = iter(round_panels(run, step))
    for number, nested, logs in rounds_inside(step):
        panel = next(titles)
        yield Section(
            anchor=f"round={dotted((*path, number))}",
            title=panel.title,
            notes=panel.notes,
            written=tuple(_written(logs[0])) if logs else (),
            steps=_steps(nested, (*path, number), whole),
        )
        for log in logs[1:]:
            panel = next(titles)
            anchor = f"round={dotted((*path, log.round))}"
            yield Section(anchor=anchor, title=panel.title, notes=panel.notes, written=tuple(_written(log)))


def _written(log: RoundLog) -> Iterator[Labelled]:
    for place, completion in enumerate(log.completions):
        yield Labelled(_label_of(completion, place), completion.text)


def _label_of(completion: Completion, place: int) -> str:
    problems = "".join(f"; {problem}" for problem in completion.problems)
    return f"{'completion' if not place else f're-ask {place}'}: {completion.reading}{problems}"


def _steps(run: Run, path: tuple[int, ...], whole: Run) -> tuple[StepText, ...]:
    return tuple(_step(run, step, path, whole) for step in run.steps)


def _step(run: Run, step: StepRecord, path: tuple[int, ...], whole: Run) -> StepText:
    own = (*path, step.step)
    seen = run.workflow.sees(step.step)
    return StepText(
        anchor=anchor_of(own),
        name=run.name_of(step.step),
        worker=step.worker_name or f"worker {step.worker}",
        subtask=run.workflow[step.step].subtask,
        state=step.picture().state,
        facts=tuple(facts_of_step(step)),
        span=_span(step, whole),
        sees=tuple(Link(run.name_of(other), anchor_of((*path, other))) for other in seen),
        messages=_messages(step.messages),
        reply=step.response,
        error=step.error,
        inside=tuple(_round_sections(run, step, own, whole)) if step.nested else (),
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


def _span(step: StepRecord, whole: Run) -> Span | None:
    if step.started is None or step.finished is None or whole.finished is None or whole.finished <= whole.started:
        return None
    length = whole.finished - whole.started
    start, end = ((at - whole.started) / length for at in (step.started, step.finished))
    return Span(max(0.0, min(start, 1.0)), max(0.0, min(end, 1.0)))
