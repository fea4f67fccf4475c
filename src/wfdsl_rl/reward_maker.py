"""`make_reward`: a reward from a pool of workers and tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from wfdsl.conductor.ablation import Ablation
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.prompt import DEFAULT_PROMPT, Prompt
from wfdsl.errors import UsageError
from wfdsl.grading.sandbox import Sandbox
from wfdsl.interpreter.budget import NOTHING_SPENT, Budget, BudgetTracker
from wfdsl.interpreter.config import RunConfig
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import summaries
from wfdsl.interpreter.running import RunOptions
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.reward import Reward
from wfdsl_rl.scoring import RewardFunction, RewardValues, Scorer


def make_reward(
    pool: Pool | str,
    tasks: Iterable[Task],
    *,
    prompt: Prompt | str = DEFAULT_PROMPT,
    conductor: ConductorConfig | None = None,
    max_steps: int = DEFAULT_MAX_STEPS,
    values: RewardValues | RewardFunction | None = None,
    ablation: Ablation | None = None,
    executions: int = 1,
    common_random_numbers: bool = False,
    end_of_text: int | Collection[int] | None = None,
    concurrency: int = 64,
    deadline_s: float | None = None,
    budget: Budget | BudgetTracker | None = None,
    journal: Journal | str | Path | None = None,
    config: RunConfig | None = None,
    options: RunOptions | None = None,
    sandbox: Sandbox | None = None,
    grades: bool = True,
    seed: int = 0,
    name: str = "",
) -> Reward:
    """A reward function: it parses completions, runs their workflows on a pool and grades the answers.

    Args:
        pool: The workers, or the name or file of a pool.
        tasks: The questions with their gold answers; ids must differ.
        prompt: The prompt of `rows`: a template set, its name or its file.
        conductor: Its `without`, `pick`, `shuffle` and `seed` say which workers `rows` lists, under which indices; all
            of them, under their own, unless given. Its `access` says what an access entry may be.
        max_steps: The most steps of a valid workflow.
        values: The reward of each outcome, or a function of a scored completion and its task; the paper's unless given.
        ablation: What the Conductor may not decide.
        executions: How often each valid workflow is run; its score is the mean.
        common_random_numbers: Whether the completions of a row in `trl` draw the same random numbers.
        end_of_text: The tokens that end a completion, for `trl`: the `eos_token_id` of the tokenizer, or of the model's
            generation config.
        concurrency: The most workflows in flight. Our choice: 64.
        deadline_s: Seconds that a batch may take. Workflows that still run then are stopped and have failed.
        budget: The most that may be spent on all runs, or the ledger of a budget. What the journal's runs have been
            charged counts towards a budget, but not towards a ledger.
        journal: Where each call is kept, so that a repeated sample id makes no call twice.
        config: How workflows are run.
        options: Further arguments of `wfdsl.run`, such as a `limiter` that other runs share.
        sandbox: Where programs are graded; the shared one unless given.
        grades: Whether answers are graded; if not, every answer is unjudged.
        seed: Part of the sample ids of `trl`.
        name: Part of the sample ids of `trl`, such as the name of a training stage.

    Raises:
        UsageError: two tasks have the same id, or the pool or prompt cannot be read.
        JournalFailure: the journal cannot be opened.
    """
    by_id: dict[str, Task] = {}
    for task in tasks:
        if by_id.setdefault(task.id, task) is not task:
            raise UsageError(f"two tasks have the id {task.id!r}: ids must differ")
    shared: RunOptions = {**(options or {})}
    own = [Journal(journal)] if isinstance(journal, str | Path) else []
    kept = journal if isinstance(journal, Journal) else own[0] if own else None
    if kept is not None:
        shared["journal"] = kept
    if budget is not None:
        shared["budget"] = budget_tracker(budget, kept) if isinstance(budget, Budget) else budget
    conductor = conductor or ConductorConfig()
    ends = [end_of_text] if isinstance(end_of_text, int) else end_of_text
    return Reward(
        pool=Pool.load(pool) if isinstance(pool, str) else pool,
        tasks=by_id,
        prompt=Prompt.load(prompt) if isinstance(prompt, str) else prompt,
        scorer=Scorer(
            max_steps=max_steps,
            access=conductor.access,
            config=config,
            options=shared,
            values=values or RewardValues(),
            ablation=ablation or Ablation(),
            sandbox=sandbox,
            grades=grades,
        ),
        conductor=conductor,
        executions=executions,
        common_random_numbers=common_random_numbers,
        end_of_text=None if ends is None else frozenset(ends),
        concurrency=concurrency,
        deadline_s=deadline_s,
        seed=seed,
        name=name,
        _own=own,
    )


def budget_tracker(budget: Budget, journal: Journal | None) -> BudgetTracker:
    """The tracker of a budget, with what a journal's earlier sessions were charged."""
    spent = NOTHING_SPENT
    for summary in [] if journal is None else summaries(journal.path):
        spent = spent.plus(summary.charged)
    return BudgetTracker(budget, spent)
