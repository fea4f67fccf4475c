"""A question as the workers of a preset know it: the item behind its text, and its hidden side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from wfdsl_rl.gym.world.behaviour import Seat
from wfdsl_rl.gym.world.families import recognise
from wfdsl_rl.gym.world.latents import latents_of
from wfdsl_rl.gym.world.presets import SALT

if TYPE_CHECKING:
    from wfdsl_rl.gym.world.item import Item
    from wfdsl_rl.gym.world.latents import Latents
    from wfdsl_rl.gym.world.presets import Preset
    from wfdsl_rl.gym.world.profiles import Domain


@dataclass(frozen=True, slots=True)
class Known:
    """A question before the workers of a preset."""

    preset: Preset
    item: Item
    domain: Domain
    latents: Latents

    def seat(self, voice: int, limit: float) -> Seat:
        """A worker before it."""
        base = self.preset.abilities[voice, self.item.family] - self.latents.hardness[voice]
        favourite = self.latents.favourite[self.preset.relatives[voice]]
        return Seat(voice, base, favourite, self.latents.eye[voice], limit)


@lru_cache(maxsize=65536)
def known(preset: Preset, question: str) -> Known | None:
    """The question of this text; None if it is none of the gym's."""
    item = recognise(question)
    return None if item is None else known_item(preset, item)


def known_item(preset: Preset, item: Item) -> Known:
    """The question of an item."""
    domain: Any = item.kind  # the gym has no custom kind
    constants = preset.domains[domain]
    return Known(preset, item, domain, latents_of(item, constants, preset.behaviour.temptation, preset.relatives, SALT))
