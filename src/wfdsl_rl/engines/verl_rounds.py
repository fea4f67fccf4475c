"""Recursion as an agent loop of verl 0.9: the policy writes a workflow, sees the answer, and may revise the workflow.

    - name: wfdsl_rounds                        # in the file that rollout.agent.agent_loop_config_path names
      _target_: wfdsl_rl.engines.verl_rounds.RoundsAgentLoop
      url: http://127.0.0.1:8700                # or pool and tasks
      max_rounds: 2

The rounds are one conversation and one sample of verl: what the policy wrote is trained on, the messages between are
masked, and the reward is the last round's. verl has one advantage for a sample, so a first round is not weighted by
itself, unlike arXiv 2512.04388, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput
from verl.utils.profiler import simple_timer

from wfdsl.conductor.checkpoint import PromptSettings, prompt_settings
from wfdsl.errors import UsageError
from wfdsl_rl.engines.results import Result
from wfdsl_rl.engines.rows import sample_of
from wfdsl_rl.engines.source import SourceOptions, numbers_of, reward_source

_FROM_VERL = (
    "name",
    "trainer_config",
    "server_manager",
    "tokenizer",
    "processor",
    "dataset_cls",
    "data_config",
    "tools",
)
"""What verl gives to every agent loop, besides options."""


class RoundsAgentLoop(AgentLoopBase):  # type: ignore[misc,unused-ignore]
    """Rounds until the policy keeps an answer, a round has none, or `max_rounds` or the response length is reached."""

    def __init__(
        self,
        *,
        max_rounds: int = 2,
        prompt: str | None = None,
        max_steps: int | None = None,
        unscored: float = 0.5,
        hf_model_type: str | None = None,
        **options: Any,
    ) -> None:
        """verl makes one for each sample.

        Args:
            max_rounds: The most workflows of a sample.
            prompt: The template set of the rows, or a checkpoint's folder; it asks for revisions.
            max_steps: The most steps of a workflow, as revisions are told; 5 unless given.
            unscored: The reward of a last round about which nothing is known, as in `compute_score`.
            hf_model_type: verl's.
            options: verl's, and those of `SourceOptions`.

        Raises:
            UsageError: the source or the prompt cannot be used.
        """
        super().__init__(hf_model_type=hf_model_type, **{name: options.pop(name, None) for name in _FROM_VERL})
        if max_rounds < 1:
            raise UsageError(f"max_rounds must be at least 1 (got {max_rounds})")
        self._max_rounds = max_rounds
        self._unscored = unscored
        self._prompt = _settings(prompt, max_steps)
        self._source = reward_source(SourceOptions.of(options))

    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **row: Any) -> AgentLoopOutput:
        """Write, run and revise; `row` is one of `wfdsl serve --score --rows verl`.

        Raises:
            UsageError, BudgetExhausted, ServerGone: as the source raises them.
        """
        episode = _Episode(row, self.rollout_config.response_length)
        episode.tokens = await self.ct_build_initial_tokens(episode.messages)
        for number in range(self._max_rounds):
            await self._write(episode, sampling_params, int(priority))
            await self._score(episode)
            if number + 1 == self._max_rounds or not await self._ask_for_revision(episode, number):
                break
        return episode.output(self._unscored)

    async def _write(self, episode: _Episode, sampling_params: dict[str, Any], priority: int) -> None:
        """A completion, cut to the rest of the response length, as it is trained on."""
        with simple_timer("generate_sequences", episode.seconds):
            written = await self.server_manager.generate(
                request_id=episode.id,
                prompt_ids=episode.tokens,
                sampling_params=dict(sampling_params),
                priority=priority,
            )
        ids = list(written.token_ids)[: episode.room]
        logprobs = None if written.log_probs is None else list(written.log_probs)[: len(ids)]
        if logprobs is not None and episode.logprobs is None:
            episode.logprobs = []
        merged, episode.mask, episode.logprobs = await self.ct_merge_assistant_token(
            episode.tokens, ids, episode.mask, episode.logprobs, assistant_logprobs=logprobs
        )
        episode.tokens = merged.token_ids
        episode.add(written, self.tokenizer.decode(ids, skip_special_tokens=True))

    async def _score(self, episode: _Episode) -> None:
        sample = sample_of(episode.extra, episode.messages[-1]["content"])
        if episode.results:
            sample["previous"] = episode.results[-1]["final"]
        with simple_timer("compute_score", episode.seconds):
            episode.results += await self._source.score([sample])

    async def _ask_for_revision(self, episode: _Episode, number: int) -> bool:
        """Append the request for a revision; False if there is no answer to revise, or no room for a revision."""
        final = episode.results[-1]["final"]
        if final is None:
            return False
        left = self._max_rounds - number - 2
        asked = dict(self._prompt.prompt.revise(final[1], max_steps=self._prompt.max_steps, rounds_left=left))
        merged, mask, logprobs = await self.ct_merge_context_msg(
            episode.messages, [*episode.messages, asked], episode.tokens, episode.mask, episode.logprobs
        )
        if len(mask) >= episode.length:
            return False
        episode.messages.append(asked)
        episode.tokens, episode.mask, episode.logprobs = merged.token_ids, mask, logprobs
        return True


class _Episode:
    """The conversation of a sample, its tokens, and the results of its rounds."""

    def __init__(self, row: Mapping[str, Any], length: int) -> None:
        """`length`: the most tokens after the prompt."""
        self.id = uuid4().hex
        self.length = length
        self.messages = [dict(each) for each in row["raw_prompt"]]
        self.extra = {**row["extra_info"], "task": row["reward_model"]["ground_truth"]}
        self.tokens: list[int] = []
        self.mask: list[int] = []
        self.logprobs: list[float] | None = None
        self.results: list[Result] = []
        self.seconds: dict[str, float] = {}
        self._preempted = 0
        self._more: dict[str, Any] = {}
        self._experts: Any = None

    @property
    def room(self) -> int:
        """Tokens that may still be written."""
        return self.length - len(self.mask)

    def add(self, written: Any, text: str) -> None:
        """Keep what verl's server says of a completion."""
        self.messages.append({"role": "assistant", "content": text})
        self._preempted += written.num_preempted or 0
        self._more = {**written.extra_fields, **self._more}
        if (newest := written.extra_fields.get("max_global_steps")) is not None:
            self._more["max_global_steps"] = newest
        if written.routed_experts is not None:
            self._experts = written.routed_experts

    def output(self, unscored: float) -> AgentLoopOutput:
        """The sample as verl trains on it."""
        prompt = len(self.tokens) - len(self.mask)
        numbers = [numbers_of(each, unscored) for each in self.results]
        cost_usd = sum(each["cost_usd"] for each in numbers)
        about = {**numbers[-1], "cost_usd": cost_usd, "rounds": float(len(numbers)), "first": numbers[0]["score"]}
        scores = [each["score"] for each in numbers]
        return AgentLoopOutput(
            prompt_ids=self.tokens[:prompt],
            response_ids=self.tokens[prompt:],
            response_mask=self.mask,
            response_logprobs=self.logprobs,
            routed_experts=None if self._experts is None else self._experts[: len(self.tokens)],
            reward_score=scores[-1],
            num_turns=2 * len(numbers),
            metrics=AgentLoopMetrics(num_preempted=self._preempted, **self.seconds),
            extra_fields={**self._more, "reward_extra_info": about, "turn_scores": scores, "tool_rewards": []},
        )


@lru_cache
def _settings(prompt: str | None, max_steps: int | None) -> PromptSettings:
    return prompt_settings(None, prompt=prompt, max_steps=max_steps)
