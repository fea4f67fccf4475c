"""The simulated workers: chat messages in, a realistic reply out, by the behaviour model of their preset.

They keep nothing between calls and know nothing but the messages, the step's path, and `sample` or `seed`: the same
call gets the same reply, and calls that differ in any of these are as independent as at a temperature above 0.
"""

from __future__ import annotations

import asyncio
from math import log
from typing import TYPE_CHECKING, Any, Final

from wfdsl.errors import UsageError
from wfdsl.protocols import PROBE, Reply, Usage
from wfdsl.workers.call_settings import in_time
from wfdsl.workers.registry import OpenWorkers
from wfdsl_rl.gym.world.behaviour import respond
from wfdsl_rl.gym.world.costs import seconds_of, usage_of
from wfdsl_rl.gym.world.noise import Scalars
from wfdsl_rl.gym.world.play import call_key
from wfdsl_rl.gym.world.presets import preset_of
from wfdsl_rl.gym.world.profiles import PROFILES
from wfdsl_rl.gym.world.replies import read, render, wording_key
from wfdsl_rl.gym.world.roles import instruction_of
from wfdsl_rl.gym.world.scene import scene_of
from wfdsl_rl.gym.world.states import OTHER, Attempt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl.protocols import Call
    from wfdsl.workers.entry import WorkerEntry
    from wfdsl_rl.gym.world.presets import Preset

PROVIDER: Final = "gym"
USUAL_TOKENS: Final = 4096
"""The token limit at which the accuracies hold. Source: arXiv 2512.04388, controlled setting."""
_LONG: Final = 5
"""Times as many tokens are as good as no limit."""
_OPTIONS: Final = frozenset({"preset", "profile", "sleep"})
_SCALARS: Final = Scalars()


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> SimulatedWorker:  # noqa: ARG001  (every builder takes them)
    """The worker of an entry whose provider is `gym`; `options` holds `preset`, `profile` and, at will, `sleep`.

    Raises:
        UsageError: an option is missing, not known, or of the wrong type.
    """
    for option in sorted(set(entry.options) - _OPTIONS):
        raise UsageError(
            f'worker "{entry.name}": the gym has no option "{option}"; it has {", ".join(sorted(_OPTIONS))}'
        )
    preset = preset_of(_text(entry, "preset"))
    name = _text(entry, "profile")
    voices = [voice for voice in preset.members if PROFILES[voice].name == name]
    if not voices:
        have = ", ".join(PROFILES[voice].name for voice in preset.members)
        raise UsageError(f'worker "{entry.name}": {preset.name} has no profile "{name}"; it has {have}')
    sleep = entry.options.get("sleep", 0.0)
    if isinstance(sleep, bool) or not isinstance(sleep, int | float) or sleep < 0:
        raise UsageError(f'worker "{entry.name}": the option sleep is a factor on the simulated seconds, such as 0.1')
    return SimulatedWorker(preset, voices[0], max_tokens=entry.max_tokens, sleep=float(sleep))


def _text(entry: WorkerEntry, option: str) -> str:
    value = entry.options.get(option)
    if not isinstance(value, str):
        raise UsageError(f'worker "{entry.name}": a gym worker needs options = {{ preset = "...", profile = "..." }}')
    return value


class SimulatedWorker:
    """One worker of a preset."""

    __slots__ = ("_max_tokens", "_preset", "_sleep", "_voice")

    def __init__(self, preset: Preset, voice: int, *, max_tokens: int = USUAL_TOKENS, sleep: float = 0.0) -> None:
        """`sleep` is the share of the simulated seconds that a call really takes."""
        self._preset = preset
        self._voice = voice
        self._max_tokens = max_tokens
        self._sleep = sleep

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: the question is none of the gym's, or the deadline has passed.
        """
        reply = self.answer(call)
        if self._sleep:
            async with in_time(call):
                await asyncio.sleep(self._sleep * seconds_of(PROFILES[self._voice], reply.usage))
        if call.on_delta is not None:
            call.on_delta(reply.text)
        return reply

    def answer(self, call: Call) -> Reply:
        """The reply, without delay.

        Raises:
            WorkerFailure: the question is none of the gym's.
        """
        if len(call.messages) == 1 and call.messages[0]["content"] == PROBE:
            return Reply("ok", "stop", Usage(len(PROBE) // 4, 1), f"simulated {PROFILES[self._voice].name}")
        scene = scene_of(call.messages, self._preset)
        question, domain = scene.question, scene.question.domain
        readings = [read(text, question.item) for text in scene.seen]
        seen = [reading.state for reading in readings]
        instruction = instruction_of(scene.subtask, domain)
        luck = luck_of(call.sample, call.settings)
        key = call_key(_SCALARS, question.latents.key, self._voice, call.path, luck)
        max_tokens = int(call.settings.get("max_tokens") or self._max_tokens)
        seat = question.seat(self._voice, token_limit(max_tokens))
        setting = self._preset.settings[domain]
        state = respond(_SCALARS, setting, seat, instruction=instruction, seen=seen, key=key)
        other = next((reading.given for reading in reversed(readings) if _is_other(reading.state)), "")
        looks = any(isinstance(earlier, Attempt) for earlier in seen)
        text = render(state, question.item, instruction.role, wording_key(key), something_in_view=looks, other=other)
        cut = isinstance(state, Attempt) and state.cut
        usage = usage_of(state, seen, domain, asked_chars=scene.asked_chars, key=key, max_tokens=max_tokens)
        return Reply(text, "length" if cut else "stop", usage, f"simulated {PROFILES[self._voice].name}")

    def __repr__(self) -> str:
        return f"SimulatedWorker({self._preset.name}, {PROFILES[self._voice].name})"


def _is_other(state: Any) -> bool:
    return isinstance(state, Attempt) and state.answer == OTHER


def luck_of(sample: str, settings: Mapping[str, Any]) -> str:
    """What tells apart calls that are otherwise the same: the seed, where one is set, or else the sample."""
    seed = settings.get("seed")
    return f"sample {sample}" if seed is None else f"seed {seed}"


def token_limit(max_tokens: int) -> float:
    """A limit in tokens on the scale of `Seat.limit`: 0 at the usual 4096, 1 from five times as many."""
    return min(log(max_tokens / USUAL_TOKENS) / log(_LONG), 1.0)
