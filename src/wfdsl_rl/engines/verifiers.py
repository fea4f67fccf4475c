"""A task set for verifiers 0.4, which prime-rl trains on, too: tasks with the Conductor's prompt, and rewards.

verifiers finds task sets by the name of a module at the top level, so put these two lines into a module of yours:

    from wfdsl_rl.engines.verifiers import WorkflowTaskset
    __all__ = ["WorkflowTaskset"]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from uuid import uuid4

import verifiers.v1 as vf

from wfdsl.conductor.prompt import DEFAULT_PROMPT
from wfdsl.errors import UsageError
from wfdsl.tasks.loading import load_tasks
from wfdsl_rl.engines.client import Result, RewardClient
from wfdsl_rl.reward import Reward


class WorkflowTaskConfig(vf.TaskConfig):  # type: ignore[misc,unused-ignore]
    """The options of a task (`--env.taskset.task.*`)."""

    pool: str | None = None
    """The name or file of the workers."""
    tasks: str | None = None
    """The name or file of the tasks."""
    limit: int | None = None
    """How many tasks are read."""
    url: str | None = None
    """A reward server, which has the same pool and tasks; without it, this process scores."""
    run: str = ""
    """With a server, a name before all sample ids, so that experiments share nothing."""
    unscored: float = 0.5
    """The reward of a completion about which nothing is known: that of a wrong answer."""

    def reward(self, prompt: str = DEFAULT_PROMPT) -> Reward:
        """The reward of the pool and the tasks.

        Raises:
            UsageError: the tasks or the pool cannot be read.
        """
        if self.pool is None or self.tasks is None:
            raise UsageError("name the workers and the tasks: --env.taskset.task.pool, --env.taskset.task.tasks")
        return _reward(self.pool, self.tasks, self.limit, prompt)

    async def score(self, sample: dict[str, Any]) -> Result:
        """The result of a sample (`task`, `completion`, `shown`, `true`), from the server or from this process."""
        if self.url is not None:
            asked = {**sample, "sample_id": uuid4().hex}  # equal completions are run each by itself
            return (await _client(self.url, run=self.run).score([asked]))[0]
        return (await self.reward()([sample["completion"]], [sample]))[0].to_dict()


_client = lru_cache(RewardClient)


@lru_cache
def _reward(pool: str, tasks: str, limit: int | None, prompt: str) -> Reward:
    return Reward(pool, load_tasks(tasks, limit=limit), prompt=prompt)


class WorkflowTasksetConfig(vf.TasksetConfig):  # type: ignore[misc,unused-ignore]
    """The options of the task set."""

    task: WorkflowTaskConfig = WorkflowTaskConfig()
    prompt: str = DEFAULT_PROMPT
    """The prompt's template set."""


class WorkflowData(vf.TaskData):  # type: ignore[misc,unused-ignore]
    """A task as verifiers keeps it."""

    extra: dict[str, Any]
    """What names the task and the workers of its prompt."""


class WorkflowTask(vf.Task[WorkflowData, Any, WorkflowTaskConfig]):  # type: ignore[misc,unused-ignore]
    """A question for which a workflow is to be written."""

    @vf.reward  # type: ignore[untyped-decorator,unused-ignore]
    async def workflow(self, trace: vf.Trace) -> float:
        """The score of the completion; further numbers become metrics."""
        result = await self.config.score({**self.data.extra, "completion": trace.last_reply})
        trace.record_metrics(
            {
                "right": float(result["outcome"] == "right"),
                "valid": float(result["outcome"] != "invalid"),
                "unscored": float(result["score"] is None),
                "steps": float(result["steps"]),
                "cost_usd": float(result["cost_usd"] or 0.0),
            }
        )
        return self.config.unscored if result["score"] is None else float(result["score"])


class WorkflowTaskset(vf.Taskset[WorkflowTask, WorkflowTasksetConfig]):  # type: ignore[misc,unused-ignore]
    """The tasks of a file, a data set or a gym, each with the prompt that a Conductor is asked with."""

    def load(self) -> Iterator[WorkflowTask]:
        """Each task once, in order.

        Raises:
            UsageError: the tasks or the pool cannot be read.
        """
        for row in self.config.task.reward(self.config.prompt).rows():
            extra = {name: row[name] for name in ("task", "shown", "true")}
            yield WorkflowTask(WorkflowData(prompt=row["prompt"], extra=extra), self.config.task)
