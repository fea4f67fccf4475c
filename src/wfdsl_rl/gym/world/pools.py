"""Presets as pools, so that `--pool gym/paper7` works wherever a pool is named."""

from __future__ import annotations

from typing import Final

from wfdsl.workers.entry import SIMULATED, PoolSettings, Prices, WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym.checkpoints import GYM_TINY, GYM_TINY_AXES
from wfdsl_rl.gym.world.presets import PRESETS, Preset, preset_of
from wfdsl_rl.gym.world.profiles import DOMAINS, Profile
from wfdsl_rl.gym.world.workers import PROVIDER

_CONDUCTORS: Final = {"gym/axes": GYM_TINY_AXES}
"""The Conductor that was trained for a preset; GYM_TINY for the others."""


class GymPools:
    """What the entry point `gym` names: called with a preset's name, it gives the pool."""

    def __call__(self, name: str) -> Pool:
        """The pool of a preset.

        Raises:
            UsageError: there is no such preset.
        """
        preset = preset_of(name)
        entries = [_entry(preset, preset.profile(index)) for index in range(len(preset.members))]
        description = f"Simulated workers. {preset.summary} Version {preset.version}, {preset.content_hash}"
        conductor = _CONDUCTORS.get(name, GYM_TINY)
        return Pool(entries, settings=PoolSettings(name=name, description=description, conductor=conductor))

    def names(self) -> tuple[str, ...]:
        """The names that can be asked for."""
        return tuple(PRESETS)


load: Final = GymPools()


def description_of(profile: Profile) -> str:
    """What a Conductor is shown of a worker: its advertised accuracy on each domain, in tenths, in few tokens."""
    return " ".join(f"{domain} {round(10 * profile.accuracy[domain])}" for domain in DOMAINS)


def _entry(preset: Preset, profile: Profile) -> WorkerEntry:
    prices = Prices(input=profile.usd_input, output=profile.usd_output, source="genai-prices 0.2.3, simulated tokens")
    return WorkerEntry(
        name=profile.name,
        provider=PROVIDER,
        model=f"{preset.name}@{preset.version}",
        description=description_of(profile),
        tags=(*profile.tags, SIMULATED),
        options={"preset": preset.name, "profile": profile.name},
        prices=prices,
        retries=0,
    )
