"""Simulated workers: chat messages in, a realistic reply out, by the behaviour model of their preset.

They keep nothing between calls and know nothing but the messages, the step's path, and `sample` or `seed`: the same
call gets the same reply, and calls that differ in any of these are as independent as at a temperature above 0.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.protocols import PROBE, Call, Reply, Usage
from wfdsl.workers.call_settings import in_time
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.registry import OpenWorkers
from wfdsl_rl.gym.world.behaviour import respond
from wfdsl_rl.gym.world.presets import Preset, preset_of
from wfdsl_rl.gym.world.profiles import PROFILES, seconds_of, usage_of
from wfdsl_rl.gym.world.questions import USUAL_TOKENS, call_key, parse_messages, stream_of, token_limit
from wfdsl_rl.gym.world.randomness import Scalars
from wfdsl_rl.gym.world.replies import read, render, wording_key
from wfdsl_rl.gym.world.roles import instruction_of
from wfdsl_rl.gym.world.states import OTHER, Attempt

PROVIDER: Final = "gym"
_OPTIONS: Final = frozenset({"preset", "profile", "sleep"})
_SCALARS: Final = Scalars()


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> SimulatedWorker:  # noqa: ARG001  (every builder takes them)
    """The worker of an entry whose provider is `gym`; `options` holds `preset`, `profile` and optionally `sleep`.

    Raises:
        UsageError: an option is missing, not known, or of the wrong type.
    """
    for option in sorted(set(entry.options) - _OPTIONS):
        raise UsageError(
            f'worker "{entry.name}": the gym has no option "{option}"; it has {", ".join(sorted(_OPTIONS))}'
        )
    preset = preset_of(_text(entry, "preset"))
    name = _text(entry, "profile")
    agents = [agent for agent in preset.members if PROFILES[agent].name == name]
    if not agents:
        have = ", ".join(PROFILES[agent].name for agent in preset.members)
        raise UsageError(f'worker "{entry.name}": {preset.name} has no profile "{name}"; it has {have}')
    sleep = entry.options.get("sleep", 0.0)
    if isinstance(sleep, bool) or not isinstance(sleep, int | float) or sleep < 0:
        raise UsageError(f'worker "{entry.name}": the option sleep is a factor on the simulated seconds, such as 0.1')
    return SimulatedWorker(preset, agents[0], max_tokens=entry.max_tokens, sleep=float(sleep))


def _text(entry: WorkerEntry, option: str) -> str:
    value = entry.options.get(option)
    if not isinstance(value, str):
        raise UsageError(f'worker "{entry.name}": a gym worker needs options = {{ preset = "...", profile = "..." }}')
    return value


class SimulatedWorker:
    """One worker of a preset."""

    __slots__ = ("_agent", "_max_tokens", "_preset", "_sleep")

    def __init__(self, preset: Preset, agent: int, *, max_tokens: int = USUAL_TOKENS, sleep: float = 0.0) -> None:
        """`sleep` is the share of the simulated seconds that a call really takes."""
        self._preset = preset
        self._agent = agent
        self._max_tokens = max_tokens
        self._sleep = sleep

    def simulated_seconds(self, usage: Usage) -> float:
        """How long a model like this one would take for a call of this size."""
        return seconds_of(PROFILES[self._agent], usage)

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: the gym does not know the question, or the deadline has passed.
        """
        reply = self.answer(call)
        if self._sleep:
            async with in_time(call):
                await asyncio.sleep(self._sleep * seconds_of(PROFILES[self._agent], reply.usage))
        if call.on_delta is not None:
            call.on_delta(reply.text)
        return reply

    def answer(self, call: Call) -> Reply:
        """The reply, without delay.

        Raises:
            WorkerFailure: the gym does not know the question.
        """
        if len(call.messages) == 1 and call.messages[0]["content"] == PROBE:
            return Reply("ok", "stop", Usage(len(PROBE) // 4, 1), f"simulated {PROFILES[self._agent].name}")
        asked = parse_messages(call.messages, self._preset)
        question, domain = asked.question, asked.question.domain
        replies = [read(text, question.item) for text in asked.seen]
        seen = [reply.state for reply in replies]
        instruction = instruction_of(asked.subtask, domain)
        stream = stream_of(call.sample_id, call.settings)
        key = call_key(_SCALARS, question.latents.key, self._agent, call.path, stream)
        max_tokens = int(call.settings.get("max_tokens") or self._max_tokens)
        worker = question.worker(self._agent, token_limit(max_tokens))
        family = question.item.family
        setting, parts = self._preset.settings[family], self._preset.constants(family).parts
        state = respond(_SCALARS, setting, worker, instruction=instruction, seen=seen, key=key)
        other = next((reply.given for reply in reversed(replies) if _is_other(reply.state)), "")
        looks = any(isinstance(earlier, Attempt) for earlier in seen)
        text = render(state, question.item, instruction.role, wording_key(key), something_in_view=looks, other=other)
        cut = isinstance(state, Attempt) and state.cut
        chars = asked.asked_chars
        usage = usage_of(state, seen, domain, parts=parts, asked_chars=chars, key=key, max_tokens=max_tokens)
        return Reply(text, "length" if cut else "stop", usage, f"simulated {PROFILES[self._agent].name}")

    def __repr__(self) -> str:
        return f"SimulatedWorker({self._preset.name}, {PROFILES[self._agent].name})"


def _is_other(state: Any) -> bool:
    return isinstance(state, Attempt) and state.answer == OTHER
