"""What a simulated call would cost: tokens and seconds, as a real one of the kind that it stands for.

The texts of the gym are shorter than those of models, so tokens are drawn, not counted. All figures are our choice, set
so that a mixture of agents comes to about the paper's 11 000 tokens a question.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Final

from wfdsl.protocols import Usage
from wfdsl_rl.gym.world.noise import Scalars
from wfdsl_rl.gym.world.profiles import PROFILES
from wfdsl_rl.gym.world.states import STRANGER, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl_rl.gym.world.profiles import Domain, Profile
    from wfdsl_rl.gym.world.states import State

TYPICAL_TOKENS: Final[Mapping[Domain, int]] = {"math": 650, "choice": 300, "text": 500, "code": 900}
"""Output tokens of an attempt by a worker of wordiness 1."""
PLAN_SHARE: Final = 0.4
"""The length of a plan beside an attempt."""
SPREAD: Final = 0.3
"""Standard deviation of the logarithm of the length."""
CHARS_PER_TOKEN: Final = 4
_LENGTH: Final = 120
"""The stream of noise that lengths come from."""


def usage_of(
    state: State, seen: Sequence[State], domain: Domain, *, asked_chars: int, key: int, max_tokens: int
) -> Usage:
    """The tokens of a call."""
    read = asked_chars // CHARS_PER_TOKEN + 1 + sum(round(_length(earlier, domain)) for earlier in seen)
    if not isinstance(state, Plan) and state.cut:
        return Usage(read, max_tokens)
    length = _length(state, domain) * exp(SPREAD * Scalars().normal(key, _LENGTH))
    return Usage(read, max(1, min(round(length), max_tokens)))


def _length(state: State, domain: Domain) -> float:
    wordiness = 1.0 if state.voice == STRANGER else PROFILES[state.voice].wordiness
    return TYPICAL_TOKENS[domain] * wordiness * (PLAN_SHARE if isinstance(state, Plan) else 1.0)


def usd_of(profile: Profile, usage: Usage) -> float:
    """What these tokens cost by the profile's price list, in US dollars."""
    return (usage.input_tokens * profile.usd_input + usage.output_tokens * profile.usd_output) / 1_000_000


def seconds_of(profile: Profile, usage: Usage) -> float:
    """How long such a reply would take."""
    return profile.first_token_s + usage.output_tokens / profile.tokens_per_s
