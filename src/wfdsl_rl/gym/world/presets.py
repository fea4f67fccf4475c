"""Presets: the pools of simulated workers, with every number that their behaviour depends on.

A version is frozen: its numbers, and how it reads each instruction that a published figure rests on. A change of those
is a new version, never an edit, so that what was trained or measured on a preset keeps its meaning. The content hash
also tells apart rules that read other instructions differently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from hashlib import sha256
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl_rl.gym.world import axes
from wfdsl_rl.gym.world.behaviour import DomainSetting
from wfdsl_rl.gym.world.constants import ALIKE, Behaviour, DomainConstants, added
from wfdsl_rl.gym.world.profiles import DOMAINS, PROFILES, RELATIVES, Domain, Profile
from wfdsl_rl.gym.world.randomness import Scalars, quantile, text_key
from wfdsl_rl.gym.world.roles import VOCABULARY

VERSION: Final = 1
SALT: Final = f"gym {VERSION}"
"""Part of every key of noise: the same questions are as hard in every preset of a version."""

EASE: Final[Mapping[Domain, Mapping[str, float]]] = {
    "math": {"arithmetic": 0.6, "algebra": 0.0, "counting": -0.6},
    "choice": {"knowledge": 0.35, "measures": 0.0, "numbers": -0.35},
    "text": {"strings": -0.3, "dates": 0.0, "units": 0.3},
    "code": {"list-code": 0.3, "string-code": 0.1, "number-code": -0.1, "line-code": -0.3},
}
"""How much easier than its domain a family is, for all workers alike."""

CONSTANTS: Final[Mapping[Domain, DomainConstants]] = {
    "math": DomainConstants(
        common_share=0.60, relatives_share=0.08, worker_share=0.17, plan_gain=0.12, plan_cost=0.05, load=0.06,
        long_gain=0.15, keep=1.4, detect=-0.4, fix=0.1, overdone=0.5, own_vote=0.5, muddle=1.1,
    ),
    "choice": DomainConstants(
        common_share=0.70, relatives_share=0.08, worker_share=0.12, plan_gain=0.03, plan_cost=0.15, load=0.10,
        long_gain=0.06, keep=1.3, detect=-0.6, fix=0.0, overdone=0.7, own_vote=1.0, muddle=1.25,
    ),
    "text": DomainConstants(
        common_share=0.68, relatives_share=0.08, worker_share=0.12, plan_gain=0.25, plan_cost=0.03, load=0.09,
        long_gain=0.08, keep=1.3, detect=-0.5, fix=0.0, overdone=0.5, own_vote=0.5, muddle=0.5,
    ),
    "code": DomainConstants(
        common_share=0.50, relatives_share=0.10, worker_share=0.22, plan_gain=0.45, plan_cost=0.03, load=0.07,
        long_gain=0.20, keep=1.5, detect=-0.4, fix=0.1, overdone=0.5, own_vote=1.5, muddle=1.5,
    ),
}  # fmt: skip
"""What differs between the domains. `wfdsl_rl.gym.world.constants` says which of these were fitted, and to what."""

BEHAVIOUR: Final = Behaviour()

LEVELS: Final[tuple[tuple[float, ...], ...]] = (
    (1.339, 1.396, -0.432, -0.19),
    (1.099, 1.353, -0.608, -0.407),
    (0.785, 1.301, -0.658, 0.176),
    (0.682, 1.175, -0.682, -0.791),
    (-0.597, 0.356, -0.857, -1.523),
    (1.019, 0.915, -0.61, -0.419),
    (0.612, 1.174, -0.436, -0.538),
)
"""Of each agent, on each domain. Fitted by `tests.benchmarks.gym_calibration` to the paper's accuracies."""

_RELATIVES = tuple(RELATIVES.index(profile.relatives) for profile in PROFILES)


@dataclass(frozen=True, eq=False)
class Preset:
    """A named pool of simulated workers."""

    name: str
    summary: str
    members: tuple[int, ...]
    """Voices in order of their indices: indices of `PROFILES`."""
    shifts: Mapping[int, Mapping[Domain, float]] = field(default_factory=dict)
    """True accuracies of agents that are not what their profile says."""
    shifted_levels: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    """Their levels on the domains. Fitted."""
    behaviour: Behaviour = BEHAVIOUR
    domains: Mapping[Domain, DomainConstants] = field(default_factory=lambda: CONSTANTS)
    ease: Mapping[Domain, Mapping[str, float]] = field(default_factory=lambda: EASE)
    """The families of its questions, and how much easier than its domain each is."""
    version: int = VERSION
    families: Mapping[str, DomainConstants] | None = added(None)
    """The constants of families that have their own."""
    levels: tuple[tuple[float, ...], ...] = added(LEVELS)
    """Of each agent, on each domain. Fitted."""

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the workers' numbers, and of the words that instructions are read by; 16 digits of it."""
        content = json.dumps([*map(_content, (self, PROFILES, LEVELS, ALIKE, *VOCABULARY, SALT))], sort_keys=True)
        return sha256(content.encode()).hexdigest()[:16]

    def accuracy(self, agent: int, domain: Domain) -> float:
        """The share of right answers of a worker's single call on a domain."""
        return self.shifts.get(agent, PROFILES[agent].accuracy)[domain]

    def profile(self, index: int) -> Profile:
        """The profile of the worker with this index."""
        return PROFILES[self.members[index]]

    def constants(self, family: str) -> DomainConstants:
        """The constants of a family: its own, or its domain's."""
        return (self.families or {}).get(family) or self.domains[self.domain_of(family)]

    def domain_of(self, family: str) -> Domain:
        """The domain of one of its families."""
        return next(domain for domain, families in self.ease.items() if family in families)

    def level(self, agent: int, domain: Domain) -> float:
        """How able a worker is on a domain, before what sets its families apart."""
        levels = self.shifted_levels.get(agent, self.levels[agent])
        return levels[DOMAINS.index(domain)]

    @cached_property
    def abilities(self) -> Mapping[tuple[int, str], tuple[float, ...]]:
        """For each agent and family: its ability at each part. Single-call accuracy on a part is about Φ of it."""
        return {
            (agent, family): tuple(
                round(self.level(agent, domain) + ease + self._leaning(agent, family, part), 4)
                for part in range(self.constants(family).parts)
            )
            for domain in DOMAINS
            for family, ease in self.ease[domain].items()
            for agent in range(len(PROFILES))
        }

    def _leaning(self, agent: int, family: str, part: int) -> float:
        key = text_key(SALT, "leaning", PROFILES[agent].name, family)
        own = self.constants(family).part_sd * Scalars().normal(key, 1 + part)
        return self.behaviour.family_sd * Scalars().normal(key, 0) + own

    @cached_property
    def settings(self) -> Mapping[str, DomainSetting]:
        """What behaviour needs to know of each family."""
        return {family: self._setting(domain, family) for domain in DOMAINS for family in self.ease[domain]}

    def _setting(self, domain: Domain, family: str) -> DomainSetting:
        closed = [agent for agent, profile in enumerate(PROFILES) if "closed" in profile.tags]
        levels = [quantile(self.accuracy(agent, domain)) for agent in range(len(PROFILES))]
        reference = sum(quantile(PROFILES[agent].accuracy[domain]) for agent in closed) / len(closed)
        skills = tuple(round(level - reference, 4) for level in levels)
        planning = tuple(profile.planning[domain] for profile in PROFILES)
        checking = tuple(profile.checking[domain] for profile in PROFILES)
        return DomainSetting(self.behaviour, self.constants(family), skills, planning, checking, _RELATIVES)

    @property
    def relatives(self) -> tuple[int, ...]:
        """Of each agent: its family of models."""
        return _RELATIVES


def _content(value: Any) -> Any:
    """A value as JSON, without fields that were added later and have their default."""
    if is_dataclass(value):
        named = [(each, getattr(value, each.name)) for each in fields(value)]
        return {
            each.name: _content(it) for each, it in named if not (each.metadata.get("added") and it == each.default)
        }
    if isinstance(value, Mapping):
        return {key: _content(it) for key, it in value.items()}
    return [_content(it) for it in value] if isinstance(value, tuple) else value


PRESETS: Final[Mapping[str, Preset]] = {
    preset.name: preset
    for preset in (
        Preset("gym/paper7", "Seven simulated workers with the accuracies of the paper's seven.", tuple(range(7))),
        Preset("gym/open4", "The four of them that stand for models with open weights.", (3, 4, 5, 6)),
        Preset(
            "gym/shifted",
            "The seven, of which the best is unexpectedly bad; nothing in its description says so.",
            tuple(range(7)),
            {0: {"math": 0.40, "choice": 0.60, "text": 0.12, "code": 0.08}},
            {0: (-0.132, 0.214, -1.371, -1.409)},
        ),
        Preset(
            "gym/axes",
            "The seven, on questions for which workflows of different kinds are best.",
            tuple(range(7)),
            behaviour=axes.BEHAVIOUR,
            ease=axes.EASE,
            families=axes.FAMILIES,
            levels=axes.LEVELS,
        ),
    )
}


@cache
def preset_of(name: str) -> Preset:
    """The preset of this name.

    Raises:
        UsageError: there is none.
    """
    if name not in PRESETS:
        raise UsageError(f'the gym has no preset "{name}"; it has {", ".join(PRESETS)}')
    return PRESETS[name]
