"""What a trainer reads, and what a completion is worth: rows, outcomes, rewards and figures, as plain values.

Only the writer's mistake and a wrong answer lower the score. A worker that failed and an answer that could not be
graded say nothing about the completion, so it gets no score.

Source: arXiv 2512.04388, section 4 (parse, run, compare). The outcomes `unjudged` and `failed` are our choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, Literal, TypeAlias

from wfdsl.conductor.listing import WorkerListing
from wfdsl.errors import WfdslError
from wfdsl.grading.verdict import Verdict
from wfdsl.interpreter.budget import NOTHING_SPENT, Budget, BudgetTracker, BudgetUsage
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import summaries
from wfdsl.interpreter.record import Run, total_usd
from wfdsl.interpreter.running import RunOptions
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Usage
from wfdsl.settings import Table, option
from wfdsl.tasks.task import Task

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
model writes one valid completion in a hundred, a failure is not an outage, nor are answers that cannot be graded."""


class NoScore(WfdslError):  # noqa: N818  (what it says, not what it is)
    """No valid completion of a batch has a score: the workers or the graders are down."""


Row: TypeAlias = dict[str, Any]
"""What a trainer reads: `prompt` (messages), `task` (its id), `row` (a number), `split`, and the workers offered:
`shown` are their indices in the prompt, `true` the pool's indices of the same workers. It may have `previous`, the
final (subtask, response) that it revises, `weight`, a factor on its rewards, and the `step` that reads it."""


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
    offer: WorkerListing | None = None
    """The workers that the prompt listed; None: the whole pool."""
    previous: tuple[str, str] | None = None
    """The final (subtask, response) of the previous round, for a revision."""
    options: RunOptions = field(default_factory=RunOptions)
    """Arguments of `wfdsl.run` for its runs only."""
    executions: int = 1
    """How often a valid workflow is run. All but the first have `/1`, `/2` ... after their sample id."""


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

    def to_dict(self) -> dict[str, Any]:
        """As plain values, which JSON, a trainer's log or another process can hold.

        `tokens`, `cost_usd` and `workers` (answers by worker) are of all executions; `replayed` counts the answers
        that came from the journal. `final` is the last step's subtask and response, which is `previous` of a
        revision's sample.
        """
        done = [step for run in self.runs for step in run.steps if step.status == "done"]
        used = sum((run.usage for run in self.runs), Usage())
        return {
            "score": self.score,
            "outcome": self.outcome,
            "steps": self.steps,
            "cost_usd": self.cost_usd,
            "tokens": {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens},
            "workers": dict(Counter(step.worker_name for step in done)),
            "problems": list(self.problems),
            "replayed": sum(step.replayed for step in done),
            "final": None if self.pair is None else list(self.pair),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardValues(Table):
    """The reward of each outcome. Only their differences matter to GRPO.

    Source of the defaults: arXiv 2512.04388, section 4. It has no price of a step: that 0 is our choice.
    """

    invalid: float = option(0.0, "of lists that cannot be parsed")
    wrong: float = option(0.5, "of a workflow whose answer is wrong")
    right: float = option(1.0, "of a workflow whose answer is right")
    step: float = option(0.0, "added for each step of a valid workflow; below 0, the price of a call")

    def __call__(self, scored: Scored, _: Task) -> float | None:
        """The reward; None if the outcome has no score, so that the sample is left out."""
        if not scored.has_score:
            return None
        return float(getattr(self, scored.outcome)) + self.step * scored.steps


RewardFunction: TypeAlias = Callable[[Scored, Task], float | None]
"""The reward of a completion that was run and graded, and its task; `RewardValues`, or one's own. None: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation(Table):
    """What a Conductor may not decide. Source: arXiv 2512.04388, the ablations of section 5."""

    instruction: str = option("", "what every worker is told", default_text="its subtask")
    worker: int | None = option(None, "the index of the worker that every step asks", default_text="as it was written")


@dataclass(frozen=True, slots=True)
class Sample:
    """A completion with its score."""

    step: int
    """The optimisation step that it was written for, counted from 0."""
    row: Row
    rollout: Rollout
    scored: Scored

    @property
    def reward(self) -> float | None:
        """Its score times the row's weight; None: no score."""
        return None if self.scored.score is None else float(self.row.get("weight", 1.0)) * self.scored.score

    def to_dict(self) -> dict[str, Any]:
        """As plain values: what is in its row, apart from the prompt; in `Scored.to_dict`; and these."""
        scored, run, told = self.scored, self.scored.run, self.scored.to_dict()
        return {
            **{name: value for name, value in self.row.items() if name != "prompt"},
            **told,
            "step": self.step,
            "sample_id": self.rollout.sample_id,
            "question": self.rollout.task.question,
            "completion": self.rollout.completion,
            "reward": self.reward,
            "outcomes": [each.outcome for each in scored.executions],
            "kept": scored.kept,
            "workflow": None if scored.workflow is None else scored.workflow.to_lists(),
            "replies": [] if run is None else [step.response for step in run.steps],
            "answer": None if run is None else run.answer,
            "extracted": None if scored.verdict is None else scored.verdict.extracted,
            "runs": [each.id for each in scored.runs],
            "calls": sum(told["workers"].values()),
        }


def budget_tracker(budget: Budget, journal: Journal | None) -> BudgetTracker:
    """The tracker of a budget, with what a journal's earlier sessions were charged."""
    charged = () if journal is None else (each.charged for each in summaries(journal.path))
    return BudgetTracker(budget, reduce(BudgetUsage.plus, charged, NOTHING_SPENT))


def right_share(outcomes: Iterable[Outcome]) -> float | None:
    """The share of right ones among the outcomes that have a score; None without any."""
    known = [outcome for outcome in outcomes if outcome not in NO_SCORE]
    return known.count("right") / len(known) if known else None


def metrics_of(scored: Sequence[Scored]) -> dict[str, float]:
    """What a batch was like: shares of outcomes, and the mean number of steps of a valid workflow."""
    count = len(scored)
    outcomes = Counter(each.outcome for each in scored)
    steps = [each.steps for each in scored if each.workflow is not None]
    shares = (right_share(one.outcome for one in each.executions) for each in scored)
    right = [share for share in shares if share is not None]
    return {
        "valid": (count - outcomes["invalid"]) / count,
        "cut": sum(CUT in each.problems for each in scored) / count,
        "accuracy": sum(right) / max(len(right), 1),
        "unjudged": outcomes["unjudged"] / count,
        "failed": outcomes["failed"] / count,
        "steps": sum(steps) / max(len(steps), 1),
    }


def require_scores(scored: Sequence[Scored], step: int) -> None:
    """Refuse a batch of an optimisation step in which no valid completion has a score, because workers are down.

    Raises:
        NoScore: none has; the message says why.
    """
    valid = [each for each in scored if each.outcome != "invalid"]
    enough = len(valid) == len(scored) or sum(each.outcome == "failed" for each in valid) >= _OUTAGE
    if valid and enough and all(each.score is None for each in valid):
        why = next((problem for each in valid for problem in each.problems), "the reward function gave None")
        raise NoScore(f"step {step}: no valid completion has a score: {why}")


def text_of(completion: Any) -> str:
    """The text of a completion, which may be a chat; a message without text, such as a tool call, has none."""
    content = completion if isinstance(completion, str) else completion and completion[0].get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""
