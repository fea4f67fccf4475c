"""A workflow's outcome without texts: the same behaviour, and with the same sample the same answers, as a real run.

It needs nothing but Python; `wfdsl_rl.gym.world.accuracy` plays many questions at once with numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wfdsl.errors import UsageError
from wfdsl.language.tree import ALL
from wfdsl.protocols import Usage
from wfdsl.topology import critical_path, live_steps
from wfdsl_rl.gym.world.costs import seconds_of, usage_of, usd_of
from wfdsl_rl.gym.world.known import known, known_item
from wfdsl_rl.gym.world.noise import Scalars
from wfdsl_rl.gym.world.play import Board, call_key, play
from wfdsl_rl.gym.world.profiles import PROFILES
from wfdsl_rl.gym.world.states import RIGHT, Attempt
from wfdsl_rl.gym.world.workers import USUAL_TOKENS, luck_of, token_limit

if TYPE_CHECKING:
    from wfdsl.language.workflow import Workflow
    from wfdsl_rl.gym.world.item import Item
    from wfdsl_rl.gym.world.known import Known
    from wfdsl_rl.gym.world.presets import Preset
    from wfdsl_rl.gym.world.states import State

_SCALARS = Scalars()
_GAP = "\n\n"
"""Stands between a question and the first subtask."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a workflow on a question. Simulated, like everything of the gym."""

    right: bool
    states: tuple[State, ...]
    """Of each step; of steps that cannot change the answer too, though they are not run."""
    usage: Usage
    """Of the steps that are run."""
    usd: float
    seconds: float
    """Along the slowest path."""


def simulate(
    workflow: Workflow,
    question: str | Item,
    preset: Preset,
    *,
    sample: str = "",
    prefix: tuple[int, ...] = (),
    previous: tuple[str, State] | None = None,
    max_tokens: int = USUAL_TOKENS,
) -> Played:
    """Play a workflow on a question, with the same outcome as `wfdsl.run` with this `sample` on the preset's pool.

    Args:
        workflow: What to play; its workers are ordinals of the preset.
        question: A question of the gym, as text or as item.
        preset: Whose workers.
        sample: Tells plays apart that are otherwise the same.
        prefix: The path of the round or node that the workflow runs in; a Conductor's round n has (0, n).
        previous: Subtask and final state of the round before.
        max_tokens: The token limit of each call.

    Raises:
        UsageError: the question is none of the gym's, or a worker is not in the preset.
    """
    this = known(preset, question) if isinstance(question, str) else known_item(preset, question)
    if this is None:
        raise UsageError(f"the gym does not know this question: {question!r}; wfdsl_rl.gym.make gives some it knows")
    check_workers(workflow, preset)
    luck = luck_of(sample, {})
    board = Board(_SCALARS, preset, this.domain, this.seat, this.latents.key)
    last = None if previous is None else previous[1]
    states = play(board, workflow, luck=luck, limit=token_limit(max_tokens), prefix=prefix, previous=last)
    return _played(workflow, states, _Play(this, luck, prefix, previous, max_tokens))


def check_workers(workflow: Workflow, preset: Preset) -> None:
    """See that every worker is one of the preset's.

    Raises:
        UsageError: one is not.
    """
    for index, step in enumerate(workflow.steps):
        if not isinstance(step.worker, int) or not 0 <= step.worker < len(preset.members):
            raise UsageError(
                f"step {index}: {preset.name} has no worker {step.worker!r}; it has 0 to {len(preset.members) - 1}"
            )


@dataclass(frozen=True, slots=True)
class _Play:
    """One play: on what, with which luck, behind what."""

    question: Known
    luck: str
    prefix: tuple[int, ...]
    previous: tuple[str, State] | None
    max_tokens: int


def _played(workflow: Workflow, states: list[State], this_play: _Play) -> Played:
    total, usd, seconds = Usage(), 0.0, {}
    for index in sorted(live_steps(workflow)):
        profile = PROFILES[states[index].voice]
        usage = _usage(workflow, states, index, this_play)
        total, usd = total + usage, usd + usd_of(profile, usage)
        seconds[index] = seconds_of(profile, usage)
    last = states[-1]
    right = isinstance(last, Attempt) and bool(last.answer == RIGHT)
    return Played(right, tuple(states), total, usd, critical_path(workflow, seconds).length)


def _usage(workflow: Workflow, states: list[State], index: int, this_play: _Play) -> Usage:
    step, state, this = workflow.steps[index], states[index], this_play.question
    texts = [this.item.question, _GAP, step.subtask, *(workflow.steps[seen].subtask for seen in workflow.sees(index))]
    seen = [states[earlier] for earlier in workflow.sees(index)]
    if this_play.previous is not None and step.access == ALL:
        texts, seen = [*texts, this_play.previous[0]], [this_play.previous[1], *seen]
    key = call_key(_SCALARS, this.latents.key, state.voice, (*this_play.prefix, index), this_play.luck)
    chars = sum(map(len, texts))
    return usage_of(state, seen, this.domain, asked_chars=chars, key=key, max_tokens=this_play.max_tokens)
