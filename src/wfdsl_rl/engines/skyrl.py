"""An environment for SkyRL (skyrl-gym 0.4): one completion, one reward.

    from wfdsl_rl.engines.skyrl import register_environment
    register_environment(url="http://127.0.0.1:8700")   # or pool and tasks; then rows with env_class: wfdsl find it

SkyRL's configuration refuses settings of environments that it does not know, so options are given here, in the process
that scores: the Ray task that runs the trainer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
from skyrl_gym.envs.registration import register, registry

from wfdsl_rl.engines.rows import ENV_ID, sample_of
from wfdsl_rl.engines.source import SourceOptions, numbers_of, reward_source


class ConductorEnv(BaseTextEnv):  # type: ignore[misc,unused-ignore]
    """Runs the workflow of a completion, and rewards its answer.

    SkyRL counts a positive reward as a pass. So the reward is the score less that of a wrong answer: half for a right
    answer, 0 for a wrong one, minus a half for a completion that holds no workflow. Advantages in a group are the same.
    """

    def __init__(
        self,
        env_config: Mapping[str, Any] | None = None,
        extras: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """`options`, or `env_config`: the fields of `SourceOptions`, and `wrong`, the score of a wrong answer (0.5)."""
        super().__init__()
        options = {**(options or {}), **(env_config or {})}
        extras = extras or {}
        self._wrong = float(options.pop("wrong", 0.5))
        self._source = reward_source(SourceOptions.of(options))
        self._extra = {"task": extras["reward_spec"]["ground_truth"], **extras.get("extra_info", {})}
        self._numbers: dict[str, float] = {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """The end of the episode: the reward, and the numbers of `numbers_of` as metadata.

        Raises:
            UsageError, BudgetExhausted, ServerGone: as the source raises them.
        """
        result = self._source.score_sync([sample_of(self._extra, action)])[0]
        self._numbers = numbers_of(result, self._wrong)
        reward = self._numbers["score"] - self._wrong
        return BaseTextEnvStepOutput(observations=[], reward=reward, done=True, metadata=dict(self._numbers))

    def get_metrics(self) -> dict[str, float]:
        """The numbers of the episode, which SkyRL averages."""
        return dict(self._numbers)


def register_environment(**options: Any) -> None:
    """Make the environment known as `wfdsl`, with these options; a later call replaces it."""
    registry.pop(ENV_ID, None)
    register(id=ENV_ID, entry_point=f"{__name__}:{ConductorEnv.__name__}", kwargs={"options": options})
