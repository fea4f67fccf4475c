"""What is hidden in a question: how hard it is for each worker, and which mistake each family of models falls for.

All of it follows from the text of the question, its family's ease and the preset's own key.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.noise import Scalars, text_key
from wfdsl_rl.gym.world.profiles import RELATIVES

if TYPE_CHECKING:
    from wfdsl_rl.gym.world.constants import DomainConstants
    from wfdsl_rl.gym.world.item import Item

_SCALARS = Scalars()
_COMMON_STREAMS = 40
"""Streams of the model families; a worker's own come behind them."""
_WORKER_STREAMS, _EYE_STREAMS = 80, 160


@dataclass(frozen=True, slots=True)
class Latents:
    """The hidden side of one question."""

    key: int
    """64 bits that are the question's own."""
    hardness: tuple[float, ...]
    """For each voice: what it takes from the margin."""
    eye: tuple[float, ...]
    """For each voice: how blind it is to mistakes here, standard normal."""
    favourite: tuple[int, ...]
    """For each family of models: the wrong answer that it falls for."""


def latents_of(
    item: Item, domain: DomainConstants, temptation: tuple[float, float], relatives: tuple[int, ...], salt: str
) -> Latents:
    """The hidden side of an item; `relatives` tells each voice's family of models."""
    key = text_key(salt, item.question)
    common = sqrt(domain.common_share) * item.difficulty
    shared = [sqrt(domain.relatives_share) * _SCALARS.normal(key, group) for group in range(len(RELATIVES))]
    own = sqrt(domain.worker_share)
    hardness = tuple(
        common + shared[group] + own * _SCALARS.normal(key, _WORKER_STREAMS + voice)
        for voice, group in enumerate(relatives)
    )
    favourite = tuple(_favourite(temptation, key, group) for group in range(len(RELATIVES)))
    eye = tuple(_SCALARS.normal(key, _EYE_STREAMS + voice) for voice in range(len(relatives)))
    return Latents(key, hardness, eye, favourite)


def _favourite(temptation: tuple[float, float], key: int, group: int) -> int:
    share = _SCALARS.uniform(key, _COMMON_STREAMS + group)
    first, second = temptation
    return 1 if share < first else 2 if share < first + second else 3
