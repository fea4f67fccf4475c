"""Baselines that are fitted on nothing: what a baseline is, workflow files, one call, and attempts with a vote.

A baseline is a frozen dataclass of its parameters, which says by itself what it does and what it calls.

A vote or a choice among attempts is a workflow like any other, except that no worker is asked in the last step. A
computed worker does it, at a worker index of its own next to the pool's, and costs nothing. So the run's record holds
every call, and its answer is the last step's response. Answers are read and compared as the graders do, without a gold
answer. A policy is given nothing but the question, so the kind of answer follows from the question and the replies.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias

from wfdsl.api import load
from wfdsl.conductor.policy import Policy, Solution, WorkflowPolicy
from wfdsl.conductor.prompt import question_text
from wfdsl.errors import UsageError
from wfdsl.grading.extraction import final_answer, final_code
from wfdsl.grading.mathematics import grade_math
from wfdsl.grading.text import same_text
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import run
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Reply, Worker
from wfdsl.settings import Option, Table, option, to_table
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool

SOLVE: Final = "Solve the task and give the final answer."
"""What a worker is asked that solves the task by itself, in every baseline; our choice."""
FOLDER: Final = Path(__file__).parent
"""Where the `.wf` files are."""
_WORKER: Final = "WORKER"


def alone(worker: int) -> Workflow:
    """The workflow of one call."""
    return Workflow((Step(worker, SOLVE),))


SUBTASKS: Final[Mapping[str, str]] = {
    "P": "Write a short plan for the task. Do not solve it.",
    "S": SOLVE,
    "R": "Improve the solution above and give the final answer.",
    "V": "Verify the solution above, correct what is wrong, and give the final answer.",
    "A": "Compare the answers above and give the soundest final answer.",
}
"""What each kind of step is asked; our choice."""


def random_workflow(chance: random.Random, workers: Sequence[int], *, max_steps: int = 5) -> Workflow:
    """A workflow of one to `max_steps` steps, as many as often; workers are drawn evenly.

    Attempts see the plans, at most two, and second looks see everything; our choice.
    """
    count = chance.randint(1, max_steps)
    plans = chance.randint(0, min(2, count - 1))
    attempts = chance.randint(1, count - plans)
    looks = "VRA" if attempts > 1 else "VR"
    steps: list[tuple[str, Access]] = [(SUBTASKS["P"], ())] * plans + [(SOLVE, tuple(range(plans)))] * attempts
    steps += [(SUBTASKS[chance.choice(looks)], ALL) for _ in range(count - len(steps))]
    return Workflow(tuple(Step(chance.choice(workers), subtask, access) for subtask, access in steps))


def workers_of(pool: Pool) -> tuple[int, ...]:
    """The workers that baselines ask, by index: all but the Conductors, which would write workflows of their own.

    Raises:
        UsageError: the pool has Conductors only.
    """
    found = tuple(index for index in pool.indices if index not in pool.conductors)
    if not found:
        raise UsageError(f"pool {pool.name!r} has Conductors only: a baseline asks plain workers, so give it one")
    return found


def worker_option(place: int | None = 0, about: str = "who is asked: a name or an index") -> Any:
    """A parameter that is a worker; by default the one at a place in the pool, counted from 0 and around."""
    return option(place, about, metavar=_WORKER, ge=0)


def is_worker(parameter: Option) -> bool:
    """Whether a parameter is a worker."""
    return parameter.metavar == _WORKER


class Baseline(Table):
    """A row of the table of baselines. The first line of its docstring says what it does."""

    __slots__ = ()
    name: ClassVar[str]
    calls: ClassVar[str] = "1"
    """Calls of workers for each question, by its parameters."""
    source: ClassVar[str] = "none"
    """The paper."""
    simplifies: ClassVar[str] = "nothing; our choice"
    """What is left out of the paper's method, or replaced."""

    def policy(self, pool: Pool) -> Policy:  # noqa: ARG002  (others read files for the pool)
        """What answers questions on a pool."""
        assert isinstance(self, Policy)
        return self

    def dearest(self, pool: Pool) -> Iterable[Workflow]:
        """Workflows of which one costs at least as much, with all its steps, as what a question leads to."""
        return map(alone, workers_of(pool))

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"kind": self.name, **to_table(self)}


class WorkflowFile(Baseline):
    """A `.wf` file of this folder, which has the parameters."""

    __slots__ = ()

    def policy(self, pool: Pool) -> WorkflowPolicy:
        """The workflow of the file for the plain workers of a pool."""
        params = {name: str(value) for name, value in to_table(self).items()}
        return WorkflowPolicy(load(FOLDER / f"{self.name}.wf", pool=pool.subset(workers_of(pool)), params=params))


@dataclass(frozen=True, slots=True)
class SelfReflection(WorkflowFile):
    """One worker answers, then checks and corrects its latest attempt, again and again."""

    name = "self-reflection"
    calls = "rounds + 1"
    source = "Self-Refine, arXiv 2303.17651; Reflexion, arXiv 2303.11366; 5x self-reflection of arXiv 2512.04388"
    simplifies = "always all rounds, where the papers stop once the worker is satisfied; no memory between tasks"
    worker: int = worker_option()
    rounds: int = option(4, "corrections", ge=1)


@dataclass(frozen=True, slots=True)
class Consensus(WorkflowFile):
    """Independent attempts by one worker, and a call that finds what they agree on."""

    name = "consensus"
    calls = "n + 1"
    source = "5x consensus of arXiv 2512.04388; Universal self-consistency, arXiv 2311.17311"
    simplifies = "an aggregator instead of the count of answers; `majority-vote` counts"
    worker: int = worker_option()
    aggregator: int = worker_option(0, "who compares")
    n: int = option(5, "attempts", ge=1)


@dataclass(frozen=True, slots=True)
class MixtureOfAgents(WorkflowFile):
    """Every worker answers by itself, and an aggregator makes one answer of them all."""

    name = "moa"
    calls = "layers * workers of the pool + 1"
    source = "Mixture-of-Agents, arXiv 2406.04692"
    simplifies = "one layer of proposals unless told, as in arXiv 2512.04388; the paper has three"
    aggregator: int = worker_option(0, "who makes one answer of them: name your best worker")
    layers: int = option(1, "layers of proposals, each of which sees the one before", ge=1)


@dataclass(frozen=True, slots=True)
class Debate(WorkflowFile):
    """Two workers answer, each answers again with both views before it, and a judge decides."""

    name = "debate"
    calls = "2 * rounds + 3"
    source = "Multiagent debate, arXiv 2305.14325"
    simplifies = "two debaters and one round unless told; a judge instead of agreement among the debaters"
    first: int = worker_option(0, "a debater")
    second: int = worker_option(1, "the other one")
    judge: int = worker_option(2, "who decides")
    rounds: int = option(1, "in which each answers again", ge=1)


@dataclass(frozen=True, slots=True)
class TreeOfAgents(WorkflowFile):
    """Two branches of attempts, each made one answer, and a root that compares the two."""

    name = "tree-of-agents"
    calls = "2 * leaves + 3"
    source = "after Tree of Thoughts, arXiv 2305.10601"
    simplifies = "a tree of whole answers, fixed beforehand; the paper searches a tree of steps and goes back"
    left: int = worker_option(0, "who makes the left branch")
    right: int = worker_option(1, "who makes the right branch")
    root: int = worker_option(0, "who compares them")
    leaves: int = option(3, "attempts of each branch", ge=1)


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
        async with pool.open():
            return Solution(await run(workflow, question, _PoolWith(self, pool), **options))

    async def __call__(self, call: Call) -> Reply:
        """One of the responses that it is shown, word for word; what comes before them belongs to the question."""
        said = [message["content"] for message in call.messages if message["role"] == "assistant"]
        responses = said[-len(self.workers) :]
        return Reply(responses[await self.pick(responses)])


class _PoolWith:
    """An open pool with a selection at the picker's index."""

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


@dataclass(frozen=True, slots=True)
class MajorityVote(Baseline):
    """Independent attempts by one worker; the answer that most give, on a tie the earliest of them."""

    name = "majority-vote"
    calls = "n"
    source = "Self-consistency, arXiv 2203.11171"
    simplifies = "temperature is the worker's own; programs agree only if they are parsed alike"
    worker: int = worker_option()
    n: int = option(5, "attempts", ge=1)

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Ask and count; options and errors as for `wfdsl.run`."""

        async def pick(replies: Sequence[str]) -> int:
            return await majority(replies, kind_of(question_text(question), replies))

        selection = Selection([self.worker] * self.n, pick, RULE, self.name)
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
