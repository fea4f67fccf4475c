"""Parameters of the behaviour model: one set for all domains, and one for each.

Margins and skills are in standard deviations of what makes a question hard for a worker. Thresholds are in standard
normal units too: a chance of Φ(z). All are our choice; those that `tests.benchmarks.gym_calibration` fits say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Final

from wfdsl_rl.gym.world.roles import Role

ALIKE: Final = 0.6
"""How much the parts of a question are as hard as the others, as a correlation with its difficulty (our choice)."""


def added(default: Any) -> Any:
    """A field that came after the first presets: where it has its default, a content hash does not see it."""
    return field(default=default, metadata={"added": True})


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something shows: in right replies and in wrong ones. The quotient is its likelihood ratio."""

    right: float
    wrong: float

    @property
    def ratio(self) -> float:
        """How much more often it is seen in wrong replies."""
        return self.wrong / self.right


@dataclass(frozen=True, slots=True)
class Evidence:
    """What shows of a reply's worth."""

    fails: Rate = Rate(0.03, 0.28)
    """It says that its own check does not come out."""
    passes: Rate = Rate(0.60, 0.16)
    """It says that its own check comes out."""
    fails_doubted: float = 0.60
    """As `fails`, of a wrong reply whose writer had doubts about the attempt in view."""
    passes_doubted: float = 0.08
    hedged: Rate = Rate(0.06, 0.32)
    """It says that it is not sure."""
    slipped: Rate = Rate(0.03, 0.16)
    """It leaves something open: a unit, a special case."""


@dataclass(frozen=True, slots=True)
class SecondLook:
    """How a wording for a second look differs from "verify"."""

    keep: float = 0.0
    detect: float = 0.0
    fix: float = 0.0
    hint: float = 0.5
    """The share of a failed check's hint that it takes up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainConstants:
    """What differs between the domains."""

    common_share: float
    """The share of a question's difficulty, as a variance, that all workers have in common."""
    relatives_share: float
    """The share that a family of models has in common."""
    worker_share: float
    """The share that is a worker's own. The rest is the randomness of a call."""
    plan_skill: float = 0.9
    """A plan of a worker of skill 0 is sound with a chance of Φ(this)."""
    plan_slope: float = 0.7
    plan_gain: float
    """What a sound plan adds to the margin."""
    plan_cost: float
    """What any plan takes from it: it has to be read."""
    load: float
    """What each further reply in view takes from it."""
    long_gain: float
    """What five times the token limit adds. Fitted to 5x context."""
    keep: float
    """A right attempt is not doubted with a chance of Φ(this), by a worker of skill 0."""
    keep_slope: float = 1.2
    detect: float
    """A wrong attempt is doubted with a chance of Φ(this), by a worker of skill 0."""
    detect_slope: float = 0.8
    fix: float
    """What knowing a wrong attempt adds to the margin of one's own."""
    overdone: float
    """What doubting a right attempt takes from it."""
    hint: float = 0.3
    """What a failed check that is in view adds to it."""
    own_vote: float
    """An aggregator's vote for its own view; an attempt by a worker of skill 0 has 1. Fitted to MoA."""
    muddle: float
    """Standard deviation of how much more or less an attempt counts by how it happens to read. Fitted to MoA."""
    parts: int = added(1)
    """How many parts the question has. An answer is right if all of them are."""
    chained: bool = added(default=False)
    """Whether each part starts from the result of the one before it."""
    span: float = added(0.0)
    """What each further part that is done in the same call takes from the margin of all."""
    part_sd: float = added(0.0)
    """Standard deviation of a worker's skill between the parts."""
    method: str = added("")
    """The method of `wfdsl_rl.gym.world.roles.METHODS` that fits, if one does."""
    check: str = added("")
    """The check of `wfdsl_rl.gym.world.roles.CHECKS` that fits, if one does."""
    relative_blind: float = added(0.0)
    """Doubting a relative's attempt is harder by this, besides what holds on every domain."""

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the randomness of a call."""
        return sqrt(1 - self.common_share - self.relatives_share - self.worker_share)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What holds on every domain."""

    family_sd: float = 0.25
    """Standard deviation of a worker's skill between the question families of a domain."""

    temptation: tuple[float, float] = (0.60, 0.27)
    """How often a mistake is the most tempting one, and the second."""
    shared_wrong: float = 0.6
    """How often it is the one that the worker's relatives fall for."""

    thin_band: float = 1.1
    """A plan is misleading where it misses being sound by more than this."""
    misled: float = 1.2
    """What a misleading plan takes, as a multiple of what a sound one adds."""
    astray: float = 0.15
    """And what it takes besides."""
    own_plan: float = 0.4
    """The share of a plan's worth that is left where the worker has written it itself."""

    pull_right: float = -0.15
    """Told to solve, a worker takes a right answer in view with a chance of Φ(this), whatever it finds itself."""
    pull_wrong: float = -0.75
    """The same for a wrong one."""

    eye_share: float = 0.6
    """The share, as a variance, of doubts that is the same whenever a worker looks at a question."""
    crowd: float = 0.17
    """What each further reply in view takes from keeping a right attempt."""
    cut_again: float = 0.3
    """What the margin of a worker loses that tries again where it has run out of tokens itself."""
    self_blind: float = 2.2
    """Doubting one's own attempt is harder by this. Fitted to 5x self-reflection."""
    loyal: float = 0.5
    """The share of that blindness that also keeps one from false alarms."""
    relative_blind: float = 0.3
    """Doubting a relative's attempt is harder by this."""
    stranger_skill: float = -0.3
    """How texts that no worker of the gym wrote are taken."""
    seen_fail: float = 0.6
    seen_hedge: float = 0.3
    seen_slip: float = 0.3
    seen_pass: float = 0.35
    """What evidence in view adds to doubts, or takes from them."""
    agree: float = 0.25
    disagree: float = 0.15
    """What each other attempt in view takes from doubts if it agrees, or adds if not."""
    second_look: Mapping[Role, SecondLook] = field(
        default_factory=lambda: {
            "verify": SecondLook(),
            "refine": SecondLook(keep=-0.2, detect=0.1, fix=0.05, hint=1.0),
            "aggregate": SecondLook(keep=-0.2, detect=-0.3),
        }
    )

    vote_slope: float = 0.35
    """How much more an attempt counts with its author's skill: good ones read better."""
    least_vote: float = 0.3
    self_bias: float = 1.25
    """How much more one's own attempt counts."""
    failed_vote: float = 0.6
    """How much an attempt counts that says that its check fails."""

    misplaced: Mapping[Role, float] = field(
        default_factory=lambda: {"solve": 0.0, "none": 0.12, "verify": 1.0, "aggregate": 1.2, "refine": 0.8}
    )
    """What an instruction takes from the margin that asks for something that is not in view."""
    wrong_kind: float = 0.25
    """What an instruction takes that speaks of another kind of question."""

    by_view: bool = added(default=False)
    """Whether a worker without an instruction that fits does what its view suggests: one attempt is checked, several
    are compared, and where there is none the question is solved."""
    method_gain: float = added(0.0)
    """What an instruction adds to the margin that names the method that fits."""
    method_loss: float = added(0.0)
    """What it takes if it names another one."""
    check_gain: float = added(0.0)
    """What an instruction adds to finding mistakes that names the check that fits."""
    check_loss: float = added(0.0)
    """What it takes if it names another one."""
    misplaced_part: float = added(0.0)
    """What an instruction takes that asks for a part that is not there."""

    evidence: Evidence = Evidence()

    @property
    def blindness_weight(self) -> float:
        return sqrt(self.eye_share)

    @property
    def moment_weight(self) -> float:
        return sqrt(1 - self.eye_share)
