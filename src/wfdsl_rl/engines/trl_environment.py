"""An environment for TRL's `GRPOTrainer(environment_factory=...)`, whose tool runs a workflow; it needs no package.

reward = Reward(pool, tasks)
GRPOTrainer(..., train_dataset=Dataset.from_list(reward.rows()),
            environment_factory=lambda: WorkflowEnvironment(reward))
"""

from __future__ import annotations

from typing import Any

from wfdsl_rl.reward import Reward
from wfdsl_rl.scoring import Scored


class WorkflowEnvironment:
    """One rollout: a question, and up to `max_rounds` workflows, of which each may build on the one before."""

    def __init__(self, reward: Reward, max_rounds: int = 2) -> None:
        self._reward = reward
        self._max_rounds = max_rounds
        self._columns: dict[str, Any] = {}
        self._rounds: list[Scored] = []
        self._answered: tuple[str, str] | None = None

    def reset(self, **columns: Any) -> None:
        """Begin with a row of `Reward.rows`."""
        self._columns, self._rounds, self._answered = columns, [], None

    def run_workflow(self, workflow: str) -> str:
        """Run a workflow on the question and read its answer. A second workflow may revise the first one.

        Args:
            workflow: The three lists `model_id`, `subtasks` and `access_list`.

        Returns:
            The answer, or the problems of the workflow.
        """
        if len(self._rounds) >= self._max_rounds:
            return f"no further round: the limit is {self._max_rounds}"
        scored = self._scored(workflow)
        self._rounds.append(scored)
        self._answered = scored.pair or self._answered
        if scored.problems:
            return f"{scored.outcome}: {', '.join(scored.problems)}"
        return self._answered[1] if self._answered else ""

    def get_reward(self) -> float | None:
        """The score of the last workflow; without one, that of an invalid one; None: it has no score."""
        return (self._rounds[-1] if self._rounds else self._scored("")).score

    def _scored(self, workflow: str) -> Scored:
        return self._reward.sync([workflow], [self._columns], previous=[self._answered])[0]
