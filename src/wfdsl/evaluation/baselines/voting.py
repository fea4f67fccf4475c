"""Baselines that are small policies: one call of a worker that is drawn or writes more, and attempts with a vote.

A vote or a choice among attempts is a workflow like any other, except that no worker is asked in the last step. A
computed worker does it, at a worker index of its own next to the pool's, and costs nothing. So the run's record holds
every call, and its answer is the last step's response.

Answers are read and compared as the graders do, without a gold answer. A policy is given nothing but the question, so
the kind of answer follows from the question and the replies.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

from wfdsl.conductor.policy import Solution, WorkflowPolicy
from wfdsl.conductor.prompt import question_text
from wfdsl.evaluation.baselines.baseline import SOLVE, Baseline, alone, worker_option, workers_of
from wfdsl.grading.extraction import final_answer, final_code
from wfdsl.grading.mathematics import grade_math
from wfdsl.grading.text import same_text
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import run
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Reply, Worker
from wfdsl.settings import option
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool

Pick: TypeAlias = Callable[[Sequence[str]], Awaitable[int]]
"""From the responses, in order, to the index of the one to give."""
AnswerKind: TypeAlias = Literal["math", "choice", "text", "code"]
PICKER: Final = -2
"""The picker's worker index. No workflow that is parsed can name it, and -1 is a Conductor's."""
RULE: Final = "Give the answer that most of the attempts agree on; on a tie, the earliest of them."
_FREE: Final = Prices(input=0.0, output=0.0, source="computed here")


@dataclass(frozen=True, slots=True)
class RandomRouter(Baseline):
    """A worker drawn for each question, alone."""

    name = "random-router"
    simplifies = "nothing: it is what routing has to beat; our choice"
    seed: int = option(0, "what the draws follow from, with the question and the run's seed", ge=0)

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Draw and ask; options and errors as for `wfdsl.run`."""
        chance = random.Random(f"router {self.seed} {options.get('seed')} {question_text(question)}")
        return Solution(await run(alone(chance.choice(workers_of(pool))), question, pool, **options))


@dataclass(frozen=True, slots=True)
class LongContext(Baseline):
    """One worker alone, with five times its token limit."""

    name = "long-context"
    source = "5x context of arXiv 2512.04388"
    simplifies = "nothing; thinking budgets stay as they are"
    worker: int = worker_option()
    factor: int = option(5, "times the worker's own token limit", ge=1)

    def policy(self, pool: Pool) -> WorkflowPolicy:
        """The one call. Budgets reserve the longer reply, and the journal tells it apart."""
        most = self.factor * pool.entry(self.worker).max_tokens
        return WorkflowPolicy(Workflow((Step(self.worker, SOLVE, max_tokens=most),)))


@dataclass(frozen=True, slots=True)
class Selection:
    """Attempts that see nothing, and the choice of one of them, which is the last step's worker itself."""

    workers: Sequence[int]
    """Who attempts."""
    pick: Pick
    rule: str
    """How it picks, in words."""
    name: str
    """What picks, with all that its choice depends on."""
    conductor: ClassVar[bool] = True
    """As of a Conductor node, only the calls that it makes are charged and journaled, and it makes none."""

    async def run(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Run the attempts, and pick; options and errors as for `wfdsl.run`."""
        last = Step(PICKER, self.rule, tuple(range(len(self.workers))))
        workflow = Workflow((*(Step(worker, SOLVE) for worker in self.workers), last))
        return Solution(await run(workflow, question, _PoolWith(self, pool), **options))

    async def __call__(self, call: Call) -> Reply:
        """One of the responses that it is shown, word for word; what comes before them belongs to the question."""
        said = [message["content"] for message in call.messages if message["role"] == "assistant"]
        responses = said[-len(self.workers) :]
        return Reply(responses[await self.pick(responses)])


class _PoolWith:
    """A pool with a selection at the picker's index. It uses the pool's clients and servers."""

    def __init__(self, picker: Selection, pool: Pool) -> None:
        self._pool = pool
        self._picker = picker
        self.name = pool.name
        self.indices = (PICKER, *pool.indices)

    def entry(self, index: int) -> WorkerEntry:
        """The entry of a worker."""
        if index != PICKER:
            return self._pool.entry(index)
        model = self._picker.name
        return WorkerEntry(name=model.partition("@")[0], provider="function", model=model, prices=_FREE, retries=0)

    def worker(self, index: int) -> Worker:
        """The worker itself."""
        return self._picker if index == PICKER else self._pool.worker(index)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[_PoolWith]:
        """Keep clients and servers up inside the block."""
        async with self._pool.open():
            yield self


@dataclass(frozen=True, slots=True)
class MajorityVote(Baseline):
    """Independent attempts by one worker; the answer that most give, on a tie the earliest of them."""

    name = "majority-vote"
    calls = "n"
    source = "Self-consistency, arXiv 2203.11171"
    simplifies = "temperature is the worker's own; programs agree only if they are parsed alike"
    worker: int = worker_option()
    n: int = option(5, "attempts", ge=1)
    kind: Literal["auto", "math", "choice", "text", "code"] = option(
        "auto", "how answers are read; auto: by question and attempts"
    )

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Ask and count; options and errors as for `wfdsl.run`."""

        async def pick(replies: Sequence[str]) -> int:
            kind = kind_of(question_text(question), replies) if self.kind == "auto" else self.kind
            return await majority(replies, kind)

        selection = Selection([self.worker] * self.n, pick, RULE, f"majority-vote@{self.kind}")
        return await selection.run(question, pool, **options)

    def dearest(self, pool: Pool) -> list[Workflow]:  # noqa: ARG002  (as every baseline)
        """All attempts."""
        return [Workflow((Step(self.worker, SOLVE),) * self.n)]


_OPTIONS: Final = re.compile(r"(?s)(?<!\w)\(?A[).:]\s.*(?<!\w)\(?B[).:]\s")
_FENCE: Final = re.compile(r"(?m)^\s*(?:```|~~~)")
_MATH: Final = re.compile(r"[\d\\^=]")


def kind_of(question: str, replies: Sequence[str]) -> AnswerKind:
    """The kind of answer. Source: our choice.

    Code if most replies hold a fenced program, choice if the question lists options A and B, math if most final
    answers have a digit or a sign of mathematics, else text.
    """
    programs = sum(bool(_FENCE.search(reply)) and final_code(reply) is not None for reply in replies)
    if 2 * programs > len(replies):
        return "code"
    if _OPTIONS.search(question):
        return "choice"
    answers = [final_answer(reply, "text") or "" for reply in replies]
    return "math" if 2 * sum(bool(_MATH.search(answer)) for answer in answers) > len(answers) else "text"


async def majority(replies: Sequence[str], kind: AnswerKind) -> int:
    """The index of the first reply of the largest group of equal answers; of groups as large, the earliest one.

    Replies without an answer have no vote; if none has one, the first reply is taken.

    Raises:
        UsageError: two expressions have to be compared, and math-verify is not installed.
    """
    groups: list[tuple[str, list[int]]] = []
    for index, reply in enumerate(replies):
        answer = _program_in(reply) if kind == "code" else final_answer(reply, kind)
        if answer is None:
            continue
        for first, group in groups:
            if await _agree(first, answer, kind):
                group.append(index)
                break
        else:
            groups.append((answer, [index]))
    return max(groups, key=lambda pair: len(pair[1]))[1][0] if groups else 0


async def _agree(one: str, other: str, kind: AnswerKind) -> bool:
    if one == other or kind not in ("math", "text"):
        return one == other
    return same_text(one, other) if kind == "text" else (await grade_math(one, other)).outcome == "right"


def _program_in(reply: str) -> str | None:
    """The program without comments and layout; its text if it cannot be parsed."""
    program = final_code(reply)
    try:
        return None if program is None else ast.dump(ast.parse(program))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return str(program).strip()
