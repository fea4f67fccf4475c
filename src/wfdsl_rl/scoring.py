"""Scoring a completion: parse it strictly, run its workflow on a pool, grade the answer, look up the reward.

Only the writer's mistake and a wrong answer lower the score. A worker that failed and an answer that could not be
graded say nothing about the completion, so it gets no score. A spent budget ends everything.

Source: arXiv 2512.04388, section 4 (parse, run, compare). The outcomes `unjudged` and `failed` are our choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from wfdsl.api import analyze
from wfdsl.conductor.ablation import Ablation
from wfdsl.conductor.listing import WorkerListing
from wfdsl.config import check_options, option
from wfdsl.errors import JournalFailure, UsageError, WfdslError
from wfdsl.grading.grade import grade
from wfdsl.grading.sandbox import Sandbox
from wfdsl.grading.verdict import Verdict
from wfdsl.interpreter.budget import BudgetTracker
from wfdsl.interpreter.config import RunConfig
from wfdsl.interpreter.context import QuestionFor
from wfdsl.interpreter.record import Run, RunFailed, total_usd
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.check import DEFAULT_MAX_STEPS, AccessScheme
from wfdsl.language.workflow import Workflow
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool

Outcome: TypeAlias = Literal["invalid", "wrong", "right", "unjudged", "failed"]
"""The result of a completion: `invalid` cannot be parsed; `wrong` and `right` have an answer that was graded;
`unjudged` has one that could not be graded; `failed` has none, because a worker failed."""

CUT: Final = "completion-cut"
"""The problem of a completion that does not end: it was cut at the token limit, or text after its lists ran on to it.
If it were worth as much as one that ends, GRPO would unlearn the end."""

NO_SCORE: Final[frozenset[Outcome]] = frozenset({"unjudged", "failed"})
"""Outcomes that say nothing about the completion."""

_OUTAGE: Final = 4
"""How many failed completions stop a training, if no other one has a score and some are invalid. Our choice: while a
model writes one valid completion in a hundred, a failure is not an outage."""


class NoScore(WfdslError):  # noqa: N818  (what it says, not what it is)
    """No valid completion of a batch has a score: the workers or the graders are down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A completion to be scored."""

    completion: str
    """The text that the model wrote."""
    cut: bool = False
    """Whether it was cut at the token limit, before the model ended it."""
    task: Task
    """The question, with its gold answer."""
    sample_id: str
    """Tells calls apart that are otherwise the same; runs of one sample draw the same random numbers. With a journal,
    a repeated sample id makes no call twice."""
    run_id: str = ""
    """The run's name; `sample_id` unless given."""
    offer: WorkerListing | None = None
    """The workers that the prompt listed; None: the whole pool."""
    previous: tuple[str, str] | None = None
    """The final (subtask, response) of the previous round, for a revision."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Where it came from, in the caller's words; kept with its runs."""
    budget: BudgetTracker | None = None
    """What its calls are charged to; None: the scorer's."""
    executions: int = 1
    """How often a valid workflow is run. All but the first have `/1`, `/2` ... after both names."""

    @property
    def names(self) -> list[tuple[str, str]]:
        """The sample id and the run id of each execution."""
        run_id = self.run_id or self.sample_id
        return [
            (self.sample_id, run_id),
            *((f"{self.sample_id}/{number}", f"{run_id}/{number}") for number in range(1, self.executions)),
        ]


@dataclass(frozen=True, slots=True)
class Scored:
    """A completion after it was run and graded."""

    outcome: Outcome
    """The result."""
    workflow: Workflow | None = None
    """What it says, in the pool's worker indices; None if it is invalid or keeps the previous round's answer."""
    run: Run | None = None
    """The record of its run; None if nothing ran."""
    verdict: Verdict | None = None
    """What the grader said; None if nothing was graded."""
    kept: bool = False
    """Whether it keeps the previous round's answer, by three empty lists."""
    problems: tuple[str, ...] = ()
    """The codes of its diagnostics, or why there is no score."""
    score: float | None = None
    """The reward: the mean over all executions that have one; None if none has."""
    again: tuple[Scored, ...] = ()
    """The further executions of the same workflow. The other fields describe the first one."""

    @property
    def executions(self) -> tuple[Scored, ...]:
        """Every execution, this one first."""
        return (self, *self.again)

    @property
    def runs(self) -> list[Run]:
        """The records of all executions that ran."""
        return [each.run for each in self.executions if each.run is not None]

    @property
    def steps(self) -> int:
        """Steps of its workflow; 0 if it has none."""
        return 0 if self.workflow is None else len(self.workflow)

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all executions, by the price list; None if a price is not known."""
        return total_usd(run.list_usd for run in self.runs)

    @property
    def has_score(self) -> bool:
        """Whether the outcome is the completion's own, rather than a worker's or a grader's failure."""
        return self.outcome not in NO_SCORE

    @property
    def pair(self) -> tuple[str, str] | None:
        """The last step's subtask and response, which the next round is shown; None without a response."""
        if self.run is None or self.run.answer is None:
            return None
        return self.run.workflow[-1].subtask, self.run.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardValues:
    """The reward of each outcome. Only their differences matter to GRPO.

    Source of the defaults: arXiv 2512.04388, section 4. It has no price of a step: that 0 is our choice.
    """

    invalid: float = option(0.0, help="reward of lists that cannot be parsed")
    wrong: float = option(0.5, help="reward of a workflow whose answer is wrong")
    right: float = option(1.0, help="reward of a workflow whose answer is right")
    step: float = option(0.0, help="added for each step of a valid workflow; below 0, the price of a call")

    def __post_init__(self) -> None:
        check_options(self)

    def of(self, scored: Scored) -> float | None:
        """The reward; None if the outcome has no score, so that the sample is left out."""
        if not scored.has_score:
            return None
        values = {"invalid": self.invalid, "wrong": self.wrong, "right": self.right}
        return values[scored.outcome] + self.step * scored.steps


RewardFunction: TypeAlias = Callable[[Scored, Task], float | None]
"""A reward of one's own: of a completion that was run and graded, and its task. None: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """How one completion becomes an outcome and a reward."""

    max_steps: int = DEFAULT_MAX_STEPS
    """The most steps of a valid workflow."""
    access: AccessScheme = "lists"
    """What an access entry may be."""
    config: RunConfig | None = None
    """How workflows are run."""
    options: RunOptions | None = None
    """Further arguments of `wfdsl.run`, except for `sample_id`, `run_id` and `previous`."""
    values: RewardValues | RewardFunction = RewardValues()
    """The reward of each outcome, or a function that gives it."""
    sandbox: Sandbox | None = None
    """Where programs are graded; None: the shared one."""
    ablation: Ablation = field(default_factory=Ablation)
    """What the Conductor may not decide, to measure what its decision is worth."""
    grades: bool = True
    """Whether answers are graded; if not, every answer is unjudged."""

    @property
    def question_for(self) -> QuestionFor:
        """Which steps are shown the question."""
        usual = (self.config or RunConfig()).question_for
        found: QuestionFor = (self.options or {}).get("question_for", usual)
        return found

    async def score(self, rollout: Rollout, pool: Pool) -> Scored:
        """Parse a completion, run its workflow and grade the answers.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: the pool cannot run workflows at all, the task's grader cannot be used, or the journal cannot
                be written.
        """
        problems, workflow = self.read(rollout, pool)
        if problems:
            invalid = Scored("invalid", problems=problems)
            return replace(invalid, score=self._worth(invalid, rollout.task))
        if workflow is None:
            assert rollout.previous is not None  # only a revision may have three empty lists
            return await self._graded(Scored("unjudged", kept=True), rollout.task, rollout.previous[1])
        first, *again = [await self._executed(workflow, rollout, pool, *names) for names in rollout.names]
        scores = [each.score for each in (first, *again) if each.score is not None]
        return replace(first, score=sum(scores) / len(scores) if scores else None, again=tuple(again))

    def read(self, rollout: Rollout, pool: Pool) -> tuple[tuple[str, ...], Workflow | None]:
        """The codes of what makes a completion invalid, and the workflow that would be run.

        Without either, the completion keeps the previous round's answer.
        """
        if rollout.cut:
            return (CUT,), None
        offer = rollout.offer or WorkerListing.of(pool)
        revises = rollout.previous is not None
        checked = analyze(
            rollout.completion,
            pool=offer,
            max_steps=self.max_steps,
            recursion=revises,
            access=self.access,
            depth_left=0,
        )
        if not checked.ok:
            return tuple(found.code for found in checked.diagnostics if found.is_error), None
        if checked.workflow is None:
            return (), None
        return (), self.ablation.applied(offer.to_pool(checked.workflow))

    async def _executed(self, workflow: Workflow, rollout: Rollout, pool: Pool, sample_id: str, run_id: str) -> Scored:
        options = RunOptions(**(self.options or RunOptions()))
        options["sample_id"], options["run_id"], options["previous"] = sample_id, run_id or None, rollout.previous
        if rollout.origin:
            options["origin"] = rollout.origin
        if rollout.budget is not None:
            options["budget"] = rollout.budget
        try:
            record = await run(workflow, rollout.task.question, pool, self.config, **options)
        except RunFailed as error:
            if isinstance(error.cause, JournalFailure):  # this machine's fault, which every further run would have
                raise error.cause from error
            unanswered = Scored("wrong", workflow, error.run, problems=(str(error),))
            if error.is_unanswered:
                return replace(unanswered, score=self._worth(unanswered, rollout.task))
            return replace(unanswered, outcome="failed")
        assert record.answer is not None  # a run that is done has an answer
        return await self._graded(Scored("unjudged", workflow, record), rollout.task, record.answer)

    async def _graded(self, answered: Scored, task: Task, answer: str) -> Scored:
        if not self.grades:
            return answered
        verdict = await grade(task, answer, sandbox=self.sandbox)
        problems = (verdict.reason,) if verdict.outcome == "unjudged" else ()
        scored = replace(answered, outcome=verdict.outcome, verdict=verdict, problems=problems)
        return replace(scored, score=self._worth(scored, task))

    def _worth(self, scored: Scored, task: Task) -> float | None:
        """The reward; None if there is none."""
        return self.values.of(scored) if isinstance(self.values, RewardValues) else self.values(scored, task)


@dataclass(frozen=True, slots=True)
class Sample:
    """A completion with its score."""

    step: int
    """The optimisation step that it was written for, counted from 0."""
    row: Mapping[str, Any]
    index: int
    """Its place among the completions of its row."""
    completion: str
    scored: Scored
    reward: float | None
    """Its score times the row's weight; None: no score."""
    shared: bool = False
    """Whether nothing was run for it, because an equal completion of the same row was run already."""
    question: str = ""
    """What was asked."""

    @property
    def runs(self) -> list[Run]:
        """The runs that it cost; none if it is shared."""
        return [] if self.shared else self.scored.runs

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        scored, run, runs = self.scored, self.scored.run, self.runs
        shown = dict(zip(map(str, self.row["shown"]), self.row["true"], strict=True))
        return {
            "step": self.step,
            "row": self.row["row"],
            "task": self.row["task"],
            "kind": self.row.get("kind", ""),
            "family": self.row.get("family", ""),
            "question": self.question,
            "index": self.index,
            "shown": shown,
            "answering": shown,
            "round": 2 if self.row.get("previous") else 1,
            "revises": self.row.get("revises"),
            "previous": self.row.get("previous"),
            "completion": self.completion,
            "outcome": scored.outcome,
            "outcomes": [each.outcome for each in scored.executions],
            "reward": self.reward,
            "problems": list(scored.problems),
            "kept": scored.kept,
            "workflow": None if scored.workflow is None else scored.workflow.to_lists(),
            "replies": [] if run is None else [step.response for step in run.steps],
            "answer": None if run is None else run.answer,
            "extracted": None if scored.verdict is None else scored.verdict.extracted,
            "shared": self.shared,
            "runs": [each.id for each in scored.runs],
            "calls": sum(len(each.steps) for each in runs),
            "tokens": sum(each.usage.total_tokens for each in runs),
            "usd": total_usd(each.list_usd for each in runs) if runs or self.shared else None,
        }


def right_share(outcomes: Iterable[Outcome]) -> float | None:
    """The share of right ones among the outcomes that have a score; None without any."""
    known = [outcome for outcome in outcomes if outcome not in NO_SCORE]
    return known.count("right") / len(known) if known else None


def metrics_of(scored: Sequence[Scored]) -> dict[str, float]:
    """What a batch was like: shares of outcomes, steps of a valid workflow, and the runs' cost by the price list.

    Samples that share one object count each, but cost once. Without `usd`, a price is not known.
    """
    count = len(scored)
    outcomes = Counter(each.outcome for each in scored)
    steps = [each.steps for each in scored if each.workflow is not None]
    shares = [right_share(one.outcome for one in each.executions) for each in scored]
    right = [share for share in shares if share is not None]
    usd = total_usd(each.cost_usd for each in {id(each): each for each in scored}.values())
    return {
        "valid": (count - outcomes["invalid"]) / count,
        "cut": sum(CUT in each.problems for each in scored) / count,
        "accuracy": sum(right) / max(len(right), 1),
        "unjudged": outcomes["unjudged"] / count,
        "failed": outcomes["failed"] / count,
        "steps": sum(steps) / max(len(steps), 1),
        **({} if usd is None else {"usd": usd}),
    }


def require_scores(scored: Sequence[Scored], step: int) -> None:
    """Refuse a batch of an optimisation step in which no valid completion has a score, because workers are down.

    Where others are invalid, `_OUTAGE` of them must have failed: answers to one task that cannot be graded are no
    outage.

    Raises:
        NoScore: none has; the message says why.
    """
    valid = [each for each in scored if each.outcome != "invalid"]
    failed = [each for each in valid if each.outcome == "failed"]
    enough = len(valid) == len(scored) or len(failed) >= _OUTAGE
    if valid and enough and all(each.score is None for each in valid):
        why = next((problem for each in valid for problem in each.problems), "nothing was graded")
        raise NoScore(f"step {step}: no valid completion has a score: {why}")


def load_function(name: str) -> RewardFunction:
    """A reward of one's own, as `file.py:name`.

    Raises:
        UsageError: there is no such file or function.
    """
    file, _, attribute = name.rpartition(":")
    if not file.endswith(".py") or not Path(file).is_file():
        raise UsageError(f"{name!r} is not a function in a file: write it as file.py:name")
    spec = spec_from_file_location(Path(file).stem, file)
    assert spec is not None  # the file ends with .py
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise UsageError(f"{file} has no function {attribute!r}")
    return function  # type: ignore[no-any-return]
