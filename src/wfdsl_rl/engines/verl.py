"""Rewards for verl 0.9: a `compute_score` for its reward managers.

    reward.custom_reward_function.path: pkg://wfdsl_rl.engines.verl
    reward.custom_reward_function.name: compute_score
    reward.custom_reward_function.reward_kwargs: {url: "http://127.0.0.1:8700"}   # or {pool: ..., tasks: ...}

verl calls it once for each completion, from `reward.num_workers` processes. Without a reward server, each of them has
its own limits of the workers and its own budget: `budget_usd`, less what all of them had spent, by the `journal` that
they share, when it started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wfdsl_rl.engines.rows import sample_of
from wfdsl_rl.engines.source import SourceOptions, numbers_of, reward_source

_FROM_VERL: Final = frozenset({"reward_router_address", "reward_model_tokenizer"})
"""What verl gives to every reward function when a reward model is served."""


async def compute_score(
    data_source: str,  # noqa: ARG001  (verl's signature)
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any],
    *,
    unscored: float = 0.5,
    **options: Any,
) -> dict[str, float]:
    """The reward of a completion, as `score`, and further numbers that verl logs.

    Args:
        data_source: The row's; not used.
        solution_str: The completion.
        ground_truth: The task's id.
        extra_info: The row's `extra_info`, as `wfdsl serve --score --rows verl` writes it.
        unscored: The reward of a completion about which nothing is known, since verl needs a number. The default is
            that of a wrong answer (our choice); the share of these completions is logged as `unscored`.
        options: Those of `SourceOptions`.

    Raises:
        UsageError: the source cannot be used.
        BudgetExhausted: in process, a call does not fit into the budget any more.
        ServerGone: the reward server did not answer for ten minutes.
    """
    source = reward_source(SourceOptions.of({name: options[name] for name in options.keys() - _FROM_VERL}))
    sample = sample_of({**extra_info, "task": ground_truth}, solution_str)
    return numbers_of((await source.score([sample]))[0], unscored)
