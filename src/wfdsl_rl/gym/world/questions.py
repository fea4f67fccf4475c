"""Many questions of one domain as arrays, for computing with all of them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from wfdsl_rl.gym.world.behaviour import Seat
from wfdsl_rl.gym.world.known import known_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from wfdsl_rl.gym.world.item import Item
    from wfdsl_rl.gym.world.presets import Preset
    from wfdsl_rl.gym.world.profiles import Domain

Floats: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True)
class Questions:
    """Questions of one domain before the workers of a preset."""

    preset: Preset
    domain: Domain
    families: NDArray[np.str_]
    keys: NDArray[np.uint64]
    base: Floats
    """Ability less hardness, one row a voice."""
    eye: Floats
    """One row a voice."""
    favourite: NDArray[np.int64]
    """One row a family of models."""

    @classmethod
    def of(cls, preset: Preset, items: Sequence[Item]) -> Questions:
        """The questions of these items, which are all of one domain."""
        known = [known_item(preset, item) for item in items]
        hidden = [each.latents for each in known]
        ability = [[preset.abilities[voice, item.family] for item in items] for voice in range(len(preset.relatives))]
        hardness = np.array([latents.hardness for latents in hidden]).T
        return cls(
            preset,
            known[0].domain,
            np.array([item.family for item in items]),
            np.array([latents.key for latents in hidden], dtype=np.uint64),
            np.array(ability) - hardness,
            np.array([latents.eye for latents in hidden]).T,
            np.array([latents.favourite for latents in hidden]).T,
        )

    def only(self, chosen: NDArray[np.bool_]) -> Questions:
        """A part of the questions."""
        return Questions(
            self.preset,
            self.domain,
            self.families[chosen],
            self.keys[chosen],
            self.base[:, chosen],
            self.eye[:, chosen],
            self.favourite[:, chosen],
        )

    def seat(self, voice: int, limit: float = 0.0) -> Seat:
        """A worker before all of them."""
        favourite = self.favourite[self.preset.relatives[voice]]
        return Seat(voice, self.base[voice], favourite, self.eye[voice], limit)

    def __len__(self) -> int:
        return len(self.keys)
