"""The table of baselines: what each is, what it leaves out of its paper, what it calls, and how it is built.

A row is either a `.wf` file of this folder or a small policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wfdsl.api import load
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.evaluation.baselines.best_fixed import BestFixed, BestFixedByKind
from wfdsl.evaluation.baselines.fitted import FittedPolicy
from wfdsl.evaluation.baselines.parameters import Parameter, values_of
from wfdsl.evaluation.baselines.random_policies import RandomRouter, RandomWorkflow
from wfdsl.evaluation.baselines.routers import BestWorker, Cascade, NearestNeighbours
from wfdsl.evaluation.baselines.single_worker import LongContext, workers_of
from wfdsl.evaluation.baselines.smoothie import SmoothieDependent, SmoothieIndependent
from wfdsl.evaluation.baselines.trained_routers import RouterDC
from wfdsl.evaluation.baselines.validation import validation_for
from wfdsl.evaluation.baselines.voting import MajorityVote
from wfdsl.workers.pool import Pool

FOLDER: Final = Path(__file__).parent
"""Where the `.wf` files are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A row of the table."""

    name: str
    about: str
    """What it does."""
    simplifies: str
    """What is left out of the paper's method, or replaced."""
    source: str
    """The paper."""
    calls: str
    """Calls of workers for each question, by its parameters."""
    parameters: tuple[Parameter, ...] = ()
    policy: Callable[..., Any] | None = None
    """A policy or a fitting method, made from the values of the parameters; None: the `.wf` file of this name."""

    @property
    def is_fitted(self) -> bool:
        """Whether it needs validation tasks."""
        return any(parameter.kind == "tasks" for parameter in self.parameters)

    def build(self, pool: Pool, settings: Mapping[str, str] | None = None, *, where: str = "") -> Policy:
        """The policy for a pool; `settings` are values of parameters as texts, `where` is the name as it was written.

        Raises:
            UsageError: a setting cannot be used, or validation tasks are missing.
        """
        values = values_of(self.parameters, settings or {}, pool, where or self.name)
        if self.policy is None:
            params = {key: str(value) for key, value in values.items()}
            return WorkflowPolicy(load(FOLDER / f"{self.name}.wf", pool=pool.subset(workers_of(pool)), params=params))
        if not self.is_fitted:
            policy: Policy = self.policy(**values)
            return policy
        source, limit, seed = values.pop("validation"), values.pop("limit"), values.pop("seed")
        return FittedPolicy(self.policy(**values), validation_for(self.name, pool, source, limit=limit, seed=seed))


_WORKER = Parameter("worker", "worker", 0, "who is asked: a name or an index")
_SEED = Parameter("seed", "seed", 0, "what the draws follow from")
_K = Parameter("k", "count", None, "validation questions that count as near; none: chosen by leaving one out")
_NEAR = Parameter("k", "count", 20, "validation questions that are looked at besides the question itself")
_EMBEDDING = Parameter("embedding", "choice", "hashing", "what makes questions near", ("hashing", "minilm"))
_LEARNING = (
    Parameter("validation", "tasks", None, "the tasks to fit on; a pool of the gym has its own"),
    Parameter("limit", "count", 960, "how many of them at most; a Conductor is trained on as many"),
    Parameter("seed", "seed", 0, "which of them, and the calls' random numbers"),
)
_SEARCH = (
    Parameter("search_calls", "count", 60_000, "calls of the search, on all validation tasks together"),
    Parameter("call_price", "share", 0.0, "the share of right answers that a further call has to be worth"),
    Parameter("max_steps", "count", 5, "the most steps"),
)

_ROWS: Final = (
    Baseline(
        name="long-context",
        about="one worker alone, with five times its token limit",
        simplifies="nothing; thinking budgets stay as they are",
        source="5x context of arXiv 2512.04388",
        calls="1",
        parameters=(_WORKER, Parameter("factor", "count", 5, "times the worker's own token limit")),
        policy=LongContext,
    ),
    Baseline(
        name="self-reflection",
        about="one worker answers, then checks and corrects its latest attempt, again and again",
        simplifies="always all rounds, where the papers stop once the worker is satisfied; no memory between tasks",
        source="Self-Refine, arXiv 2303.17651; Reflexion, arXiv 2303.11366; 5x self-reflection of arXiv 2512.04388",
        calls="rounds + 1",
        parameters=(_WORKER, Parameter("rounds", "count", 4, "corrections")),
    ),
    Baseline(
        name="consensus",
        about="independent attempts by one worker, and a call that finds what they agree on",
        simplifies="an aggregator instead of the count of answers; `majority-vote` counts",
        source="5x consensus of arXiv 2512.04388; Universal self-consistency, arXiv 2311.17311",
        calls="n + 1",
        parameters=(
            _WORKER,
            Parameter("aggregator", "worker", 0, "who compares"),
            Parameter("n", "count", 5, "attempts"),
        ),
    ),
    Baseline(
        name="majority-vote",
        about="independent attempts by one worker; the answer that most give, on a tie the earliest of them",
        simplifies="temperature is the worker's own; programs agree only if they are parsed alike",
        source="Self-consistency, arXiv 2203.11171",
        calls="n",
        parameters=(
            _WORKER,
            Parameter("n", "count", 5, "attempts"),
            Parameter(
                "kind",
                "choice",
                "auto",
                "how answers are read; auto: by question and attempts",
                ("auto", "math", "choice", "text", "code"),
            ),
        ),
        policy=MajorityVote,
    ),
    Baseline(
        name="moa",
        about="every worker answers by itself, and an aggregator makes one answer of them all",
        simplifies="one layer of proposals unless told, as in arXiv 2512.04388; the paper has three",
        source="Mixture-of-Agents, arXiv 2406.04692",
        calls="layers * workers of the pool + 1",
        parameters=(
            Parameter("aggregator", "worker", 0, "who makes one answer of them: name your best worker"),
            Parameter("layers", "count", 1, "layers of proposals, each of which sees the one before"),
        ),
    ),
    Baseline(
        name="debate",
        about="two workers answer, each answers again with both views before it, and a judge decides",
        simplifies="two debaters and one round unless told; a judge instead of agreement among the debaters",
        source="Multiagent debate, arXiv 2305.14325",
        calls="2 * rounds + 3",
        parameters=(
            Parameter("first", "worker", 0, "a debater"),
            Parameter("second", "worker", 1, "the other one"),
            Parameter("judge", "worker", 2, "who decides"),
            Parameter("rounds", "count", 1, "in which each answers again"),
        ),
    ),
    Baseline(
        name="planner-executor-verifier",
        about="one worker plans, one carries out the plan, one checks the result",
        simplifies="a worker for each part, where the paper asks one model for plan and solution; nothing is redone",
        source="after Plan-and-Solve, arXiv 2305.04091, with a verifier",
        calls="3",
        parameters=(
            Parameter("planner", "worker", 1, "who plans"),
            Parameter("executor", "worker", 0, "who carries it out"),
            Parameter("verifier", "worker", 2, "who checks"),
        ),
    ),
    Baseline(
        name="tree-of-agents",
        about="two branches of attempts, each made one answer, and a root that compares the two",
        simplifies="a tree of whole answers, fixed beforehand; the paper searches a tree of steps and goes back",
        source="after Tree of Thoughts, arXiv 2305.10601",
        calls="2 * leaves + 3",
        parameters=(
            Parameter("left", "worker", 0, "who makes the left branch"),
            Parameter("right", "worker", 1, "who makes the right branch"),
            Parameter("root", "worker", 0, "who compares them"),
            Parameter("leaves", "count", 3, "attempts of each branch"),
        ),
    ),
    Baseline(
        name="random-workflow",
        about="a workflow drawn for each question: how many plans, attempts and second looks, and whose",
        simplifies="nothing: it is what well-formed workflows are worth without a choice of workers; our choice",
        source="none",
        calls="1 to max_steps; attempts that no step sees are not run",
        parameters=(
            _SEED,
            Parameter("max_steps", "count", 5, "the most steps"),
            Parameter(
                "form", "choice", "sensible", "plans, then attempts, then second looks; or any", ("sensible", "any")
            ),
        ),
        policy=RandomWorkflow,
    ),
    Baseline(
        name="random-router",
        about="a worker drawn for each question, alone",
        simplifies="nothing: it is what routing has to beat; our choice",
        source="none",
        calls="1",
        parameters=(_SEED,),
        policy=RandomRouter,
    ),
    Baseline(
        name="best-worker-router",
        about="the worker that was right most often on validation tasks, for every question",
        simplifies="nothing; our choice",
        source="none",
        calls="1; to fit: workers * limit",
        parameters=_LEARNING,
        policy=BestWorker,
    ),
    Baseline(
        name="knn-router",
        about="the worker that was right most often on the validation tasks nearest to the question",
        simplifies="counts over neighbours of a fixed embedding instead of an encoder trained with contrastive losses",
        source="in the role of RouterDC, arXiv 2409.19886",
        calls="1; to fit: workers * limit",
        parameters=(_K, _EMBEDDING, *_LEARNING),
        policy=NearestNeighbours,
    ),
    Baseline(
        name="smoothie-independent",
        about="without gold answers: the worker whose replies to validation questions are nearest to all others'",
        simplifies="replies only are embedded, without the question, which shifts all alike",
        source="Smoothie-Global, arXiv 2412.04692",
        calls="1; to fit: workers * limit",
        parameters=(_EMBEDDING, *_LEARNING),
        policy=SmoothieIndependent,
    ),
    Baseline(
        name="smoothie-dependent",
        about="without gold answers: all workers answer, and the one whose replies are nearest to the others' here and "
        "on the nearest validation questions is taken",
        simplifies="as above; the question itself counts as much as each neighbour",
        source="Smoothie-Local, arXiv 2412.04692",
        calls="workers of the pool; to fit: workers * limit",
        parameters=(_NEAR, _EMBEDDING, *_LEARNING),
        policy=SmoothieDependent,
    ),
    Baseline(
        name="cascade-router",
        about="for each question a way to work together, then who, by counts on the nearest validation tasks",
        simplifies="counts instead of trained networks; eleven ways to work together, our own roles",
        source="in the spirit of MASRouter, arXiv 2502.11133",
        calls="1 to 5; to fit: (workers + 32) * limit",
        parameters=(
            _K,
            Parameter("call_price", "share", 0.01, "the share of right answers that a further call has to be worth"),
            _EMBEDDING,
            *_LEARNING,
        ),
        policy=Cascade,
    ),
    Baseline(
        name="routerdc",
        about="the worker whose vector is nearest to the question's, both trained with two contrastive losses",
        simplifies="a projection of a fixed embedding instead of an encoder that is trained; right or wrong as scores",
        source="RouterDC, arXiv 2409.19886",
        calls="1; to fit: workers * limit",
        parameters=(_EMBEDDING, *_LEARNING),
        policy=RouterDC,
    ),
    Baseline(
        name="best-fixed",
        about="the workflow that a search finds to be right most often on validation tasks, for every question",
        simplifies="nothing: it is what a Conductor that reads the question has to beat; our choice",
        source="none",
        calls="1 to max_steps; to fit: (workers + 32) * limit, and search_calls",
        parameters=(*_SEARCH, *_LEARNING),
        policy=BestFixed,
    ),
    Baseline(
        name="best-fixed-by-kind",
        about="such a workflow for each kind of question, and the kind of the nearest validation questions",
        simplifies="nothing; the kinds have to be known of the validation tasks; our choice",
        source="none",
        calls="as `best-fixed`",
        parameters=(*_SEARCH, _EMBEDDING, *_LEARNING),
        policy=BestFixedByKind,
    ),
)

BASELINES: Final[Mapping[str, Baseline]] = {row.name: row for row in _ROWS}
"""By name, fixed workflows first. An untrained Conductor needs no row: its model's name is a policy already."""
