"""A question as the simulated workers know it: latent difficulty, its chat messages, and the random key of a call.

All of it follows from the text of the question, its family's ease and the preset's own key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log, sqrt
from typing import Any, Final

from wfdsl.protocols import Message, WorkerFailure
from wfdsl_rl.gym.world.behaviour import WorkerOnQuestion
from wfdsl_rl.gym.world.constants import ALIKE, DomainConstants
from wfdsl_rl.gym.world.families import recognise
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.presets import SALT, Preset
from wfdsl_rl.gym.world.profiles import PROFILES, RELATIVES, Domain
from wfdsl_rl.gym.world.randomness import Arithmetic, Numbers, Scalars, text_key
from wfdsl_rl.gym.world.roles import role_of

USUAL_TOKENS: Final = 4096
"""The token limit at which the accuracies hold. Source: arXiv 2512.04388, controlled setting."""
_UNLIMITED: Final = 5
"""This many times as many tokens are as good as no limit."""
_SCALARS = Scalars()
_COMMON_STREAMS = 40
"""Streams of the model families; a worker's own come after them."""
_WORKER_STREAMS, _BLINDNESS_STREAMS = 80, 160
_PART_STREAMS, _PART_DIFFICULTY = 256, 60
"""Streams between those of two parts of a question, and the one of how hard a part is."""
GAP: Final = "\n\n"
"""Separates the question from the first subtask; no question of the gym has an empty line in it."""


@dataclass(frozen=True, slots=True)
class Latents:
    """The hidden side of one question."""

    key: int
    """64 bits that are the question's own."""
    hardness: tuple[tuple[float, ...], ...]
    """For each part of the question and agent: what it takes from the margin."""
    blindness: tuple[float, ...]
    """For each agent: how blind it is to mistakes here, standard normal."""
    shared_errors: tuple[int, ...]
    """For each family of models: the wrong answer that it falls for."""


def latents_of(preset: Preset, item: Item) -> Latents:
    """The hidden side of an item."""
    constants = preset.constants(item.family)
    key = text_key(SALT, item.question)
    hardness = tuple(_hardness(preset, constants, item, key, part) for part in range(constants.parts))
    temptation = preset.behaviour.temptation
    shared_errors = tuple(_shared_error(temptation, key, group) for group in range(len(RELATIVES)))
    blindness = tuple(_SCALARS.normal(key, _BLINDNESS_STREAMS + agent) for agent in range(len(preset.relatives)))
    return Latents(key, hardness, blindness, shared_errors)


def _hardness(preset: Preset, constants: DomainConstants, item: Item, key: int, part: int) -> tuple[float, ...]:
    """For each agent: how hard a part is for it."""
    first = _PART_STREAMS * part
    difficulty = item.difficulty
    if constants.parts > 1:
        difficulty = ALIKE * difficulty + sqrt(1 - ALIKE**2) * _SCALARS.normal(key, first + _PART_DIFFICULTY)
    common = sqrt(constants.common_share) * difficulty
    shared = [sqrt(constants.relatives_share) * _SCALARS.normal(key, first + at) for at in range(len(RELATIVES))]
    own = sqrt(constants.worker_share)
    return tuple(
        common + shared[group] + own * _SCALARS.normal(key, first + _WORKER_STREAMS + agent)
        for agent, group in enumerate(preset.relatives)
    )


def domain_of(item: Item) -> Domain:
    """The domain of an item: its kind. The gym has no custom kind."""
    domain: Any = item.kind
    return domain  # type: ignore[no-any-return]


def _shared_error(temptation: tuple[float, float], key: int, group: int) -> int:
    share = _SCALARS.uniform(key, _COMMON_STREAMS + group)
    first, second = temptation
    return 1 if share < first else 2 if share < first + second else 3


@dataclass(frozen=True, slots=True)
class Known:
    """A question for the workers of a preset."""

    preset: Preset
    item: Item
    domain: Domain
    latents: Latents

    def worker(self, agent: int, limit: float) -> WorkerOnQuestion:
        """A worker on this question; `limit` is `WorkerOnQuestion.limit`."""
        abilities = self.preset.abilities[agent, self.item.family]
        parts = zip(abilities, self.latents.hardness, strict=True)
        base = tuple(ability - hardness[agent] for ability, hardness in parts)
        shared_error = self.latents.shared_errors[self.preset.relatives[agent]]
        return WorkerOnQuestion(agent, base, shared_error, self.latents.blindness[agent], limit)


@lru_cache(maxsize=65536)
def known(preset: Preset, question: str) -> Known | None:
    """The question of this text; None if the gym does not know it, or it is of another preset."""
    item = recognise(question)
    return None if item is None or item.family not in preset.settings else known_item(preset, item)


def known_item(preset: Preset, item: Item) -> Known:
    """The question of an item."""
    return Known(preset, item, domain_of(item), latents_of(preset, item))


@dataclass(frozen=True, slots=True)
class ParsedMessages:
    """The messages of a call, understood."""

    question: Known
    seen: tuple[str, ...]
    """The replies in view, in order."""
    subtask: str
    asked_chars: int
    """Characters of the question and of all subtasks in view."""


def parse_messages(messages: Sequence[Message], preset: Preset) -> ParsedMessages:
    """Find the question, the replies in view and the subtask in messages.

    Raises:
        WorkerFailure: they hold no question of the preset.
    """
    users = [message["content"] for message in messages if message["role"] == "user"]
    for content in users:
        text, _, subtask = content.partition(GAP)
        question = known(preset, text.strip())
        if question is not None:
            own = subtask if content is users[-1] else users[-1]
            seen = tuple(message["content"] for message in messages if message["role"] == "assistant")
            return ParsedMessages(question, seen, _innermost(own), sum(map(len, users)))
    raise WorkerFailure(_not_ours(users, preset), retryable=False)


def _innermost(subtask: str) -> str:
    """Of a Conductor node's subtask that another one follows, the latter, if it says what to do."""
    last = subtask.rpartition(GAP)[2]
    return last if role_of(last) != "none" else subtask


def _not_ours(users: list[str], preset: Preset) -> str:
    asked = users[0].partition(GAP)[0] if users else ""
    shown = asked if len(asked) <= 80 else f"{asked[:77]}..."
    return (
        f"the simulated workers of {preset.name} only know its own questions, got {shown!r}; "
        f"wfdsl_rl.gym.make and `--tasks {preset.name}` make such questions (families: {', '.join(preset.settings)})"
    )


def stream_of(sample_id: str, settings: Mapping[str, Any]) -> str:
    """The name of a call's random stream: by its seed if one is set, or else by its sample."""
    seed = settings.get("seed")
    return f"sample {sample_id}" if seed is None else f"seed {seed}"


def token_limit(max_tokens: int) -> float:
    """A limit in tokens on the scale of `WorkerOnQuestion.limit`: 0 at the usual 4096, 1 from five times as many."""
    return min(log(max_tokens / USUAL_TOKENS) / log(_UNLIMITED), 1.0)


def call_key(m: Arithmetic, question_key: Numbers, agent: int, path: tuple[int, ...], stream: str) -> Numbers:
    """The random key of a call, by question, agent, path of the step, and random stream."""
    return m.joined(question_key, _call_salt(agent, path, stream))


@lru_cache(maxsize=65536)
def _call_salt(agent: int, path: tuple[int, ...], stream: str) -> int:
    return text_key(SALT, "call", PROFILES[agent].name, path, stream)
