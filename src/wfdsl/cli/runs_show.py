"""Show everything that happened in a run."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, NamedTuple

from wfdsl.cli.options import complete_runs

if TYPE_CHECKING:  # start-up time
    from collections.abc import Iterable, Mapping

    from rich.padding import Padding

    from wfdsl.conductor.round_log import RoundLog
    from wfdsl.interpreter.record import Run, StepRecord


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl runs show`."""
    about = "the run's id, or how it begins; `last` is the newest"
    complete_runs(parser.add_argument("run", metavar="RUN", help=about))
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--messages", action="store_true", help="also show what each worker was sent")


def execute(args: argparse.Namespace) -> int:
    """Print the record."""
    from wfdsl.cli.display.consoles import stdout_console
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, run_of, summaries

    path = default_path()
    run = run_of(path, full_id(path, args.run))
    if args.json:
        print(run.to_json(indent=2))
        return 0
    console = stdout_console()
    is_priced = not summaries(path, run.id)[0].is_unpriced
    options = _Options(args.messages, is_priced, as_markdown=console.is_terminal)
    for line in _lines(run, options):
        print(line, flush=True) if isinstance(line, str) else console.print(line)
    return 0


class _Options(NamedTuple):
    with_messages: bool
    is_priced: bool
    as_markdown: bool
    """Whether replies are shown as what they mean; else as they were written."""


def _lines(run: Run, options: _Options, indent: str = "") -> list[str | Padding]:
    from wfdsl.conductor.policy import ROOT_WORKFLOW
    from wfdsl.conductor.round_log import rounds_of
    from wfdsl.render.pictures import to_terminal
    from wfdsl.render.runs import options_of_run

    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started))
    lines: list[str | Padding] = [f"run {run.id}: {run.status}, started {when}, on pool {run.pool}"]
    origin = run.settings.get("origin", {})
    if not indent and "from" in origin:
        lines.append(f"  {_redone(origin)}")
    if run.error:
        lines.append(f"  {run.error}")
    logs = rounds_of([run])
    lines += _log_lines(logs[:1])
    if run.workflow != ROOT_WORKFLOW:
        drawing = str(to_terminal(run.workflow, **options_of_run(run)))
        lines += ["", *(f"  {line}" for line in drawing.splitlines()), ""]
    for step in run.steps:
        lines += _step_lines(run, step, options)
    lines += _log_lines(logs[1:])
    for lost in run.lost:
        where = "/".join(map(str, lost.path))
        lines.append(f"lost: step {where}, {lost.worker_name}: was in flight when its process ended; stays charged")
    lines.append(_totals(run, is_priced=options.is_priced))
    return [_indented(line, indent) for line in lines]


def _indented(line: str | Padding, indent: str) -> str | Padding:
    if isinstance(line, str):
        return indent + line if line.strip() else ""
    line.left += len(indent)
    return line


def _redone(origin: Mapping[str, str]) -> str:
    """Which step of which run was asked again."""
    where = f"round {origin['round']}, " if "round" in origin else ""
    return f"from run {origin['from']}, with {where}step {origin['step']} asked again"


def _log_lines(logs: Iterable[RoundLog]) -> list[str]:
    """What a Conductor wrote, and unusual events."""
    from wfdsl.conductor.round_log import remarks_on

    lines = []
    for log in logs:
        head = f"round {log.round}, {log.result}"
        lines += _block(head, log.completions[-1].text) if log.completions else [f"  {head}"]
        lines += [f"  round {log.round}: {remark}" for remark in remarks_on(log)]
    return lines


def _step_lines(run: Run, step: StepRecord, options: _Options) -> list[str | Padding]:
    from wfdsl.interpreter.record import worker_title

    facts = [step.status, *_facts(step)]
    worker = worker_title(step.worker, step.worker_name)
    lines: list[str | Padding] = [f"{run.name_of(step.step)}: {worker}: {', '.join(facts)}"]
    if options.with_messages:
        for message in step.messages:
            lines += _block(message["role"], message["content"])
            for call in message.get("tool_calls", ()):
                lines += _block(f"called {call['name']}", call["arguments"])
    for nested in step.nested:
        lines += _lines(nested, options, "    ")
    if step.error:
        lines += _block("error", step.error)
    if step.response is not None:
        lines += _reply(step.response) if options.as_markdown else _block("response", step.response)
    return lines


def _facts(step: StepRecord) -> list[str]:
    from wfdsl.render.status import dollars, duration

    facts = []
    if step.started is not None and step.finished is not None:
        facts.append(duration(step.finished - step.started))
    if step.queue_s >= 0.001:
        facts.append(f"{duration(step.queue_s)} of it queued")
    if step.retries:
        facts.append(f"{step.retries} failed attempts")
    if step.answered_by is not None:
        facts.append(f"answered by fallback worker {step.answered_by}")
    if step.usage.total_tokens:
        facts.append(f"{step.usage.input_tokens} + {step.usage.output_tokens} tokens")
    if step.paid_usd:
        facts.append(dollars(step.paid_usd))
    if step.thinking:
        facts.append(f"{len(step.thinking):,} characters of thinking left out")
    if step.finish not in (None, "stop"):
        word = f" ({step.ending})" if step.ending not in ("", step.finish) else ""
        facts.append(f"reply ended by: {step.finish}{word}")
    if step.replayed:
        facts.append("from the journal")
    return facts


def _reply(text: str) -> list[str | Padding]:
    from rich.markdown import Markdown
    from rich.padding import Padding

    return ["  response:", Padding(Markdown(text), (0, 0, 0, 6))]


def _block(title: str, text: str) -> list[str]:
    return [f"  {title}:", *(f"      {line}" for line in text.split("\n"))]


def _totals(run: Run, *, is_priced: bool) -> str:
    """What the run took; no dollars says that they are not known, $0.00 that it was free."""
    from wfdsl.render.status import dollars, duration

    parts = [f"{run.usage.input_tokens} + {run.usage.output_tokens} tokens"]
    if run.paid_usd is None:
        parts.append("price not known")
    elif run.paid_usd or is_priced:
        parts.append(f"paid {dollars(run.paid_usd)}")
    if run.charged is not None:
        parts.append(f"charged {run.charged.calls} calls, {run.charged.tokens} tokens")
        if run.charged.usd or is_priced:
            parts.append(dollars(run.charged.usd) + ("" if is_priced else " where the price is known"))
    if run.seconds is not None:
        parts.append(duration(run.seconds))
    return "total: " + ", ".join(parts)
