"""An environment for TRL's `GRPOTrainer(environment_factory=...)`, whose tool runs a workflow; it needs no package.

reward = make_reward(pool, tasks)
trainer = GRPOTrainer(..., train_dataset=Dataset.from_list(reward.rows()),
                      environment_factory=lambda: WorkflowEnvironment(reward))
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from wfdsl_rl.reward import Reward
from wfdsl_rl.rows import offer_of
from wfdsl_rl.scoring import Rollout, Scored

_NO_ANSWER: Final = "no answer"


class WorkflowEnvironment:
    """One rollout: a question, and up to `max_rounds` workflows, of which each may build on the one before."""

    def __init__(self, reward: Reward, max_rounds: int = 2) -> None:
        self._reward = reward
        self._max_rounds = max_rounds
        self._columns: dict[str, Any] = {}
        self._sample = ""
        self._rounds: list[Scored] = []

    def reset(self, **columns: Any) -> None:
        """Begin with a row of `Reward.rows`."""
        self._columns, self._rounds = columns, []
        self._sample = f"sample-{secrets.token_hex(8)}"

    def run_workflow(self, workflow: str) -> str:
        """Run a workflow on the question and read its answer. A second workflow may revise the first one.

        Args:
            workflow: The three lists `model_id`, `subtasks` and `access_list`.

        Returns:
            The answer, or the problems of the workflow.
        """
        if len(self._rounds) >= self._max_rounds:
            return f"no further round: there are {self._max_rounds}"
        scored = self._reward.score_sync([self._rollout(workflow)])[0]
        self._rounds.append(scored)
        if scored.outcome == "invalid":
            return f"{scored.outcome}: {', '.join(scored.problems)}"
        return self._answered()[1] or _NO_ANSWER

    def get_reward(self) -> float | None:
        """The score of the last workflow; a rollout without one has that of an invalid one; None: it has no score."""
        last = self._rounds[-1] if self._rounds else self._reward.score_sync([self._rollout("")])[0]
        return last.score

    def _rollout(self, completion: str) -> Rollout:
        return Rollout(
            completion=completion,
            task=self._reward.tasks[self._columns["task"]],
            sample_id=f"{self._sample}/{len(self._rounds)}",
            offer=offer_of(self._columns, self._reward.pool),
            previous=self._answered() if any(each.run for each in self._rounds) else None,
        )

    def _answered(self) -> tuple[str, str]:
        """The last subtask and its response, of the last workflow that ran."""
        run = next((each.run for each in reversed(self._rounds) if each.run is not None), None)
        return ("", "") if run is None else (run.workflow[-1].subtask, run.answer or "")
