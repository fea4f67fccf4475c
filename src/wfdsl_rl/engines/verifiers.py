"""A task set for verifiers 0.4, which prime-rl trains on, too: tasks with the Conductor's prompt, and rewards.

verifiers finds task sets by the name of a module at the top level, so put these two lines into a module of yours:

    from wfdsl_rl.engines.verifiers import WorkflowTaskset
    __all__ = ["WorkflowTaskset"]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

import verifiers.v1 as vf

from wfdsl.conductor.prompt import DEFAULT_PROMPT
from wfdsl.errors import UsageError
from wfdsl.tasks.loading import load_tasks
from wfdsl_rl.engines.rows import sample_of
from wfdsl_rl.engines.source import RewardSource, SourceOptions, numbers_of, reward_source
from wfdsl_rl.reward_maker import make_reward

_SOURCE: Final = {each.name for each in fields(SourceOptions)}


class WorkflowTaskConfig(vf.TaskConfig):  # type: ignore[misc,unused-ignore]
    """The fields of `SourceOptions` (`--env.taskset.task.*`); `pool` and `tasks` are for the prompts, too."""

    pool: str | None = None
    tasks: str | None = None
    limit: int | None = None
    seed: int | None = None
    url: str | None = None
    run: str = ""
    journal: str | None = None
    budget_usd: float | None = None
    patience_s: float = 600.0
    unscored: float = 0.5
    """The reward of a completion about which nothing is known: that of a wrong answer."""

    def source(self) -> RewardSource:
        """Where rewards come from."""
        return reward_source(SourceOptions.of(self.model_dump(include=_SOURCE)))


class WorkflowTasksetConfig(vf.TasksetConfig):  # type: ignore[misc,unused-ignore]
    """The options of the task set."""

    task: WorkflowTaskConfig = WorkflowTaskConfig()
    prompt: str = DEFAULT_PROMPT
    """The prompt's template set."""


class WorkflowData(vf.TaskData):  # type: ignore[misc,unused-ignore]
    """A task as verifiers keeps it."""

    extra: dict[str, Any]
    """What names the task and the workers of its prompt, as in `sample_of`."""


class WorkflowTask(vf.Task[WorkflowData, Any, WorkflowTaskConfig]):  # type: ignore[misc,unused-ignore]
    """A question for which a workflow is to be written."""

    @vf.reward  # type: ignore[untyped-decorator,unused-ignore]
    async def workflow(self, trace: vf.Trace) -> float:
        """The score of the completion; the further numbers of `numbers_of` become metrics."""
        result = (await self.config.source().score([sample_of(self.data.extra, trace.last_reply)]))[0]
        numbers = numbers_of(result, self.config.unscored)
        trace.record_metrics({name: value for name, value in numbers.items() if name != "score"})
        return numbers["score"]


class WorkflowTaskset(vf.Taskset[WorkflowTask, WorkflowTasksetConfig]):  # type: ignore[misc,unused-ignore]
    """The tasks of a file, a data set or a gym, each with the prompt that a Conductor is asked with."""

    def load(self) -> Iterator[WorkflowTask]:
        """Each task once, in order.

        Raises:
            UsageError: the tasks or the pool cannot be read.
        """
        config = self.config.task
        if config.pool is None or config.tasks is None:
            raise UsageError("name the workers and the tasks: --env.taskset.task.pool, --env.taskset.task.tasks")
        found = load_tasks(config.tasks, limit=config.limit, seed=config.seed)
        for row in make_reward(config.pool, found, prompt=self.config.prompt).rows():
            extra = {name: row[name] for name in ("task", "shown", "true")}
            yield WorkflowTask(WorkflowData(prompt=row["prompt"], extra=extra), config)
