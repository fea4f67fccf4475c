"""Profiles of the simulated workers: accuracies, model families, prices and speed; and the cost of a call.

The accuracies are those of the paper's controlled setting; nothing else about a worker is measured on a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Final, Literal, TypeAlias

from wfdsl.protocols import Usage
from wfdsl_rl.gym.world.randomness import Scalars
from wfdsl_rl.gym.world.states import STRANGER, Plan, State

Domain: TypeAlias = Literal["math", "choice", "text", "code"]
DOMAINS: Final[tuple[Domain, ...]] = ("math", "choice", "text", "code")
"""The paper's four: MATH500, MMLU, RLPR and LiveCodeBench, in its order."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A simulated worker."""

    name: str
    stands_for: str
    """The model whose accuracies it has."""
    accuracy: Mapping[Domain, float]
    """Share of right answers of a single call. Source: arXiv 2512.04388, controlled setting."""
    planning: Mapping[Domain, float]
    """How much better it plans than it solves, in standard deviations (our choice)."""
    checking: Mapping[Domain, float]
    """How much better it checks than it solves, in standard deviations (our choice)."""
    relatives: str
    """The model family: relatives share a part of their errors."""
    tags: tuple[str, ...]
    usd_input: float
    """US dollars per million input tokens."""
    usd_output: float
    """US dollars per million output tokens. Source of the prices: genai-prices 0.2.3, 2026-11-20."""
    wordiness: float
    """Output tokens as a multiple of the domain's usual number (our choice)."""
    first_token_s: float
    """Seconds until the reply begins (our choice)."""
    tokens_per_s: float
    """Output tokens a second (our choice)."""


def _accuracy(math: float, choice: float, text: float, code: float) -> dict[Domain, float]:
    return {"math": math / 100, "choice": choice / 100, "text": text / 100, "code": code / 100}


def _more(math: float, choice: float, text: float, code: float) -> dict[Domain, float]:
    return {"math": math, "choice": choice, "text": text, "code": code}


_CLOSED, _OPEN = ("closed", "strong"), ("open",)

PROFILES: Final[tuple[Profile, ...]] = (
    Profile("sim-gemini-2.5-pro", "Gemini 2.5 Pro", _accuracy(85.30, 91.53, 39.57, 40.14),
            _more(0.0, 0.0, 0.2, 0.0), _more(-0.3, 0.4, -0.2, 0.1), "gemini", _CLOSED,
            1.25, 10.0, 1.1, 0.9, 150.0),
    Profile("sim-claude-sonnet-4", "Claude Sonnet 4", _accuracy(82.90, 90.66, 32.60, 38.00),
            _more(0.0, 0.1, 0.0, 0.5), _more(0.1, -0.3, 0.0, 0.5), "claude", _CLOSED,
            3.0, 15.0, 0.9, 1.1, 75.0),
    Profile("sim-gpt-5", "GPT-5", _accuracy(74.45, 89.79, 33.13, 57.50),
            _more(0.2, 0.0, -0.2, -0.3), _more(0.5, 0.0, 0.5, -0.3), "gpt", _CLOSED,
            1.25, 10.0, 0.8, 0.8, 110.0),
    Profile("sim-r1-distill-32b", "DeepSeek-R1-Distill-Qwen-32B", _accuracy(78.50, 84.41, 32.75, 24.86),
            _more(0.4, 0.0, 0.1, 0.3), _more(0.2, 0.1, 0.0, 0.0), "qwen", _OPEN,
            0.12, 0.18, 2.0, 0.6, 60.0),
    Profile("sim-gemma-3-27b", "Gemma 3 27B it", _accuracy(37.45, 63.58, 14.93, 7.21),
            _more(0.2, 0.2, 0.2, 0.2), _more(0.0, 0.0, 0.0, 0.0), "gemma", _OPEN,
            0.08, 0.35, 0.7, 0.5, 70.0),
    Profile("sim-qwen3-32b-thinking", "Qwen3-32B, thinking", _accuracy(76.85, 83.28, 34.35, 31.21),
            _more(0.3, 0.1, 0.4, 0.2), _more(0.3, 0.1, 0.3, 0.1), "qwen", _OPEN,
            0.14, 0.40, 2.2, 0.6, 65.0),
    Profile("sim-qwen3-32b-direct", "Qwen3-32B, not thinking", _accuracy(73.15, 84.02, 30.60, 26.79),
            _more(0.0, 0.0, 0.0, 0.1), _more(-0.1, 0.1, 0.0, 0.0), "qwen", _OPEN,
            0.14, 0.40, 0.8, 0.6, 65.0),
)  # fmt: skip
"""In the paper's order. A worker's index here is its agent."""

RELATIVES: Final[tuple[str, ...]] = tuple(dict.fromkeys(profile.relatives for profile in PROFILES))


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
    state: State, seen: Sequence[State], domain: Domain, *, parts: int = 1, asked_chars: int, key: int, max_tokens: int
) -> Usage:
    """The tokens of a call on a question of so many parts."""
    read = asked_chars // CHARS_PER_TOKEN + 1 + sum(round(_length(earlier, domain, parts)) for earlier in seen)
    if not isinstance(state, Plan) and state.cut:
        return Usage(read, max_tokens)
    length = _length(state, domain, parts) * exp(SPREAD * Scalars().normal(key, _LENGTH))
    return Usage(read, max(1, min(round(length), max_tokens)))


def _length(state: State, domain: Domain, parts: int) -> float:
    wordiness = 1.0 if state.agent == STRANGER else PROFILES[state.agent].wordiness
    share = PLAN_SHARE if isinstance(state, Plan) else 1 / parts if state.part else 1.0
    return TYPICAL_TOKENS[domain] * wordiness * share


def usd_of(profile: Profile, usage: Usage) -> float:
    """What these tokens cost by the profile's price list, in US dollars."""
    return (usage.input_tokens * profile.usd_input + usage.output_tokens * profile.usd_output) / 1_000_000


def seconds_of(profile: Profile, usage: Usage) -> float:
    """How long such a reply would take."""
    return profile.first_token_s + usage.output_tokens / profile.tokens_per_s
