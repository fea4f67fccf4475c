"""The HTML page of a run or workflow: each step with what its worker saw, its reply, time, tokens and cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Unpack

from wfdsl.conductor.policy import ROOT_WORKFLOW, Solution
from wfdsl.conductor.round_log import Completion, RoundLog, rounds_inside
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.pictures import Drawable, ending_of, picture_of, round_panels
from wfdsl.protocols import Message
from wfdsl.render.html import Fact, Labelled, Link, Page, Section, Span, StepText, fragment_of, html_of
from wfdsl.render.model import Drawing, Options, Panel
from wfdsl.render.status import dollars, duration
from wfdsl.render.svg import svg_of
from wfdsl.render.text import counted


def to_html(value: Drawable, **options: Unpack[Options]) -> str:
    """Write a workflow, a checked text, a run or a solution as one HTML page that needs nothing else.

    The page of a run has the picture, and each step with its messages, reply, tokens, cost and time; all text of
    workers is shown as text. Arguments and errors as for `to_svg`.
    """
    return html_of(_page_of(value, options))


def to_html_fragment(value: Drawable) -> str:
    """The part of the page that a notebook shows."""
    return fragment_of(_page_of(value, {}))


def _page_of(value: Drawable, options: Options) -> Page:
    picture = picture_of(value, **options)
    svg = svg_of(picture)
    run = value.run if isinstance(value, Solution) else value
    if isinstance(run, Run):
        return _page_of_run(run, picture, svg)
    steps = tuple(_planned_steps(picture.drawing)) if picture.drawing else ()
    return Page(
        title=picture.title or "Workflow",
        description=picture.description,
        svg=svg,
        sections=(Section(anchor="workflow", title="Steps", steps=steps),),
    )


def _planned_steps(drawing: Drawing) -> Iterator[StepText]:
    """The steps of a workflow that has not run."""
    names = [drawing.names[step] if drawing.names else f"step {step}" for step in range(len(drawing.workflow))]
    for index, card in drawing.by_step():
        yield StepText(
            anchor=_anchor((index,)),
            name=names[index],
            worker=card.worker_label,
            subtask=drawing.workflow[index].subtask,
            sees=tuple(Link(names[seen], _anchor((seen,))) for seen in drawing.workflow.sees(index)),
            facts=tuple(Fact("marks", tag) for tag in card.tags),
        )


def _page_of_run(run: Run, picture: Panel, svg: str) -> Page:
    if run.workflow == ROOT_WORKFLOW:
        sections = tuple(_round_sections(run, run.steps[0], (0,), run))
    else:
        sections = (Section(anchor="workflow", title="Steps", steps=_steps(run, (), run)),)
    return Page(
        title=picture.title,
        svg=svg,
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
            anchor=f"round={_dotted((*path, number))}",
            title=panel.title,
            notes=panel.notes,
            written=tuple(_written(logs[0])) if logs else (),
            steps=_steps(nested, (*path, number), whole),
        )
        for log in logs[1:]:
            panel = next(titles)
            anchor = f"round={_dotted((*path, log.round))}"
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
        anchor=_anchor(own),
        name=run.name_of(step.step),
        worker=step.worker_name or f"worker {step.worker}",
        subtask=run.workflow[step.step].subtask,
        state=step.picture().state,
        facts=tuple(facts_of_step(step)),
        span=_span(step, whole),
        sees=tuple(Link(run.name_of(other), _anchor((*path, other))) for other in seen),
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


def _dotted(path: tuple[int, ...]) -> str:
    return ".".join(map(str, path))


def _anchor(path: tuple[int, ...]) -> str:
    return f"step={_dotted(path)}"
