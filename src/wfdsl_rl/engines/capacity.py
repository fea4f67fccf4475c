"""A capacity model: how many rollouts an hour a set-up gives, and which part of it is the limit.

Each part that every rollout needs has a rate of its own, and the smallest one is the rate of the whole. It holds while
work queues at every part, as in training and evaluation. It is compared with the local engine on a simulated clock
(`tests/rl/engines/test_capacity.py`) and with measured rates (`python -m tests.benchmarks reward_server`).
"""

from __future__ import annotations

from dataclasses import dataclass

ROLLOUT_PROCESSOR_S = 0.001
"""Seconds of a processor in which the reward server reads, runs, journals and answers a rollout of one call that has a
request of its own. Measured over 50,000 requests; `python -m tests.benchmarks reward_server` says what yours takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """A set-up; None: this part is not used, or has no limit."""

    calls: float
    """Workers' calls of a rollout."""
    latency_s: float
    """Seconds of a call."""
    depth: float | None = None
    """Calls of a rollout that wait for each other; as many as `calls` unless given."""
    workflows: int = 1024
    """The most workflows in flight (`--parallel`)."""
    calls_in_flight: int | None = None
    """The most calls in flight that all workers' limits allow together."""
    requests_per_minute: float | None = None
    """Of all workers together."""
    tokens_per_minute: float | None = None
    """Of all workers together."""
    tokens: float = 2000.0
    """Tokens of a call, input and output."""
    programs_s: float = 0.0
    """Seconds of a processor that grading a rollout takes."""
    sandbox_slots: int = 1
    """Programs that are graded at a time, on all nodes."""
    generated_tokens_per_s: float | None = None
    """Tokens that the policy writes a second, on all its GPUs."""
    completion_tokens: float = 500.0
    """Tokens of a completion of the policy."""
    processor_s: float = ROLLOUT_PROCESSOR_S
    """Seconds of a processor that a rollout takes in the process of the reward server."""

    def rates(self) -> dict[str, float]:
        """Rollouts an hour that each part allows by itself."""
        flying_s = self.latency_s * (self.calls if self.depth is None else self.depth)
        rates = {
            "process": 1 / self.processor_s,
            "workflows in flight": self.workflows / flying_s,
        }
        if self.calls_in_flight is not None:
            rates["calls in flight"] = self.calls_in_flight / (self.calls * self.latency_s)
        if self.requests_per_minute is not None:
            rates["requests per minute"] = self.requests_per_minute / 60 / self.calls
        if self.tokens_per_minute is not None:
            rates["tokens per minute"] = self.tokens_per_minute / 60 / (self.calls * self.tokens)
        if self.programs_s:
            rates["sandbox slots"] = self.sandbox_slots / self.programs_s
        if self.generated_tokens_per_s is not None:
            rates["generation"] = self.generated_tokens_per_s / self.completion_tokens
        return {name: rate * 3600 for name, rate in rates.items()}

    @property
    def limit(self) -> str:
        """The part that allows the fewest rollouts."""
        rates = self.rates()
        return min(rates, key=rates.__getitem__)

    @property
    def rollouts_per_hour(self) -> float:
        """What the whole gives."""
        return min(self.rates().values())
