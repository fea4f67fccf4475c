"""A workflow played on states: the steps in order, each with the key of its call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from wfdsl.language.tree import ALL
from wfdsl_rl.gym.world.behaviour import respond
from wfdsl_rl.gym.world.noise import text_key
from wfdsl_rl.gym.world.presets import SALT
from wfdsl_rl.gym.world.profiles import PROFILES
from wfdsl_rl.gym.world.roles import instruction_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfdsl.language.workflow import Workflow
    from wfdsl_rl.gym.world.behaviour import Seat
    from wfdsl_rl.gym.world.noise import Arithmetic, Numbers
    from wfdsl_rl.gym.world.presets import Preset
    from wfdsl_rl.gym.world.profiles import Domain
    from wfdsl_rl.gym.world.states import State


@dataclass(frozen=True, slots=True)
class Board:
    """What a workflow is played on: one question, or many of a domain."""

    arithmetic: Arithmetic
    preset: Preset
    domain: Domain
    seat: Callable[[int, float], Seat]
    """The seat of a voice, with its token limit."""
    key: Numbers


@lru_cache(maxsize=65536)
def call_salt(voice: int, path: tuple[int, ...], luck: str) -> int:
    """What tells a call apart from others on the same question: who is asked, at which step, in which sample."""
    return text_key(SALT, "call", PROFILES[voice].name, path, luck)


def call_key(m: Arithmetic, question_key: Numbers, voice: int, path: tuple[int, ...], luck: str) -> Numbers:
    """The key of a call: all its noise comes from it."""
    return m.joined(question_key, call_salt(voice, path, luck))


def play(
    board: Board,
    workflow: Workflow,
    *,
    luck: str,
    limit: float = 0.0,
    prefix: tuple[int, ...] = (),
    previous: State | None = None,
) -> list[State]:
    """The states of all steps; `previous` is what steps with access "all" see first."""
    states: list[State] = []
    setting = board.preset.settings[board.domain]
    for index, step in enumerate(workflow.steps):
        voice = board.preset.members[step.worker]  # type: ignore[index]  # resolved by the caller
        seen = [states[earlier] for earlier in workflow.sees(index)]
        if previous is not None and step.access == ALL:
            seen.insert(0, previous)
        key = call_key(board.arithmetic, board.key, voice, (*prefix, index), luck)
        instruction = instruction_of(step.subtask, board.domain)
        seat = board.seat(voice, limit)
        states.append(respond(board.arithmetic, setting, seat, instruction=instruction, seen=seen, key=key))
    return states
