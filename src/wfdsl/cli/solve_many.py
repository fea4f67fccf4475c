"""`wfdsl solve --from FILE --to FILE`: many questions, several at a time, answers in the order in which they come.

A line that has an answer is not asked again, so the same command goes on where it stopped; what a question had paid
for before is in the journal, under a run id that is made of the file, the question and the Conductor.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from wfdsl.cli.run import budget_of
from wfdsl.errors import BudgetExhausted, RunFailed, UsageError
from wfdsl.survey import read_rows

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from wfdsl.conductor.conductor import Conductor
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.pool import Pool

FAILED, SPENT = 3, 4


class Asked(NamedTuple):
    """A line of the file."""

    id: str
    question: str


def solve_lines(conductor: Conductor, pool: Pool, args: argparse.Namespace) -> int:
    """Answer every question that has no answer yet; 3 if one got none, 4 if the budget is spent."""
    target = Path(args.target)
    done = _answered(target)
    everything = list(_questions(args.source, _columns(args.map)))
    left = [asked for asked in everything if done.get(asked.id) != asked.question]
    if len(left) < len(everything):
        print(f"{len(everything) - len(left)} of {len(everything)} have an answer already", file=sys.stderr)
    if args.dry_run:
        print(f"{len(left)} questions would be asked")
        return 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with _appended(target) as out:
        return asyncio.run(_Batch(conductor, pool, args, out, len(left)).work(left))


class _Batch:
    """The questions of one command, and what has become of them."""

    def __init__(self, conductor: Conductor, pool: Pool, args: argparse.Namespace, out: IO[str], total: int) -> None:
        self._conductor = conductor
        self._pool = pool
        self._args = args
        self._out = out
        self._total = total
        self._answers = 0
        self._failures = 0
        self._spent = ""

    async def work(self, asked: list[Asked]) -> int:
        """Answer them; the exit code."""
        from wfdsl.interpreter.journal import Journal

        waiting = iter(asked)
        with nullcontext() if self._args.no_journal else Journal() as journal:
            options = self._options(journal)
            async with self._pool.open(), self._conductor.open(), asyncio.TaskGroup() as group:
                for _ in range(self._args.parallel):
                    group.create_task(self._take(waiting, options))
        if sys.stderr.isatty():
            print(file=sys.stderr)
        if self._spent:
            print(f"wfdsl solve: {self._spent}", file=sys.stderr)
            return SPENT
        return FAILED if self._failures else 0

    def _options(self, journal: Any) -> RunOptions:
        from wfdsl.interpreter.budget import Account

        args, budget = self._args, budget_of(self._args)
        return {
            "budget": None if budget is None else Account(budget),
            "journal": journal,
            "concurrency": args.concurrency,
            "seed": args.seed,
            "timeout_s": args.timeout,
            "step_timeout_s": args.step_timeout,
            "max_depth": args.max_depth,
            "reuse": args.reuse,
            "origin": {"solve": args.source, "pool": args.pool},
        }

    async def _take(self, waiting: Iterator[Asked], options: RunOptions) -> None:
        for asked in waiting:
            if self._spent:
                return
            own: RunOptions = {**options, "run_id": self._run_id(asked)}
            try:
                solution = await self._conductor.solve(asked.question, self._pool, **own)
            except BudgetExhausted as error:
                self._spent = str(error)
            except RunFailed as error:
                self._failures += 1
                self._write(asked, {"answer": None, "error": str(error), "run": error.run.to_dict()})
            else:
                self._answers += 1
                self._write(asked, solution.to_dict())

    def _run_id(self, asked: Asked) -> str:
        conductor = self._conductor
        parts = [str(Path(self._args.target).resolve()), *asked, conductor.entry.model, conductor.settings.prompt.hash]
        return f"solve-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"

    def _write(self, asked: Asked, result: dict[str, Any]) -> None:
        line = json.dumps({"id": asked.id, "question": asked.question, **result}, ensure_ascii=False)
        self._out.write(f"{line.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')}\n")
        self._out.flush()
        progress = f"{self._answers + self._failures} of {self._total}, {self._failures} without an answer"
        end = "\r" if sys.stderr.isatty() else "\n"
        print(f"{_bar(self._answers + self._failures, self._total)}{progress}", end=end, file=sys.stderr, flush=True)


def _bar(done: int, total: int, width: int = 30) -> str:
    if not sys.stderr.isatty():
        return ""
    full = width * done // total
    return f"[{'#' * full}{'.' * (width - full)}] "


def _columns(mapping: str) -> dict[str, str]:
    columns = {"question": "question"}
    for part in filter(None, mapping.split(",")):
        ours, equals, theirs = part.partition("=")
        if ours not in ("question", "id") or not equals or not theirs:
            raise UsageError(f"--map {part!r}: write question=NAME or id=NAME")
        columns[ours] = theirs
    return columns


def _questions(source: str, columns: dict[str, str]) -> Iterator[Asked]:
    ids = iter(read_rows(source, columns["id"])) if "id" in columns else None
    for row in read_rows(source, columns["question"]):
        found = None if ids is None else next(ids)
        problem = row.problem or ("" if found is None else found.problem)
        if row.text is None or problem:
            raise UsageError(f"{source}:{row.line}: {problem}")
        yield Asked(str(row.line) if found is None or found.text is None else found.text, row.text)


def _answered(target: Path) -> dict[str, str]:
    """The questions that have an answer, by id; a line that was cut off counts for nothing."""
    found: dict[str, str] = {}
    if not target.exists():
        return found
    for line in target.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and row.get("answer") is not None:
            found[str(row.get("id"))] = str(row.get("question"))
    return found


def _appended(target: Path) -> IO[str]:
    """The file, open at its end, on a line of its own."""
    cut = target.exists() and target.stat().st_size > 0 and not target.read_bytes().endswith(b"\n")
    out = target.open("a", encoding="utf-8")
    if cut:
        out.write("\n")
    return out
