"""How a simulated worker answers: from who it is, the question, its instruction and what it sees, to a reply's state.

Pure. A reply is right if a margin is positive: ability, less the question's difficulty for this worker, less the luck
of this call, plus what plans and earlier attempts in view add. The accuracy of single calls is the paper's; all else is
our choice, and `wfdsl_rl.gym.world.constants` says which numbers were fitted to the paper's baselines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wfdsl_rl.gym.world.states import (
    FAILS,
    MISLEADING,
    NO_ANSWER,
    OTHER,
    PASSES,
    RIGHT,
    SOUND,
    STRANGER,
    THIN,
    UNCHECKED,
    WRONG,
    Attempt,
    Plan,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl_rl.gym.world.constants import Behaviour, DomainConstants
    from wfdsl_rl.gym.world.noise import Arithmetic, Numbers, Truths
    from wfdsl_rl.gym.world.roles import Instruction, Role
    from wfdsl_rl.gym.world.states import State

LUCK, WHICH_WRONG, SHARED_WRONG, PLAN, ADOPT, DOUBT, CHECK, HEDGE, SLIP = range(9)
"""Streams of noise: one for each thing that luck decides in a call."""
READING: Final = 16
"""The first of many streams: one for each attempt that an aggregator reads."""
_BEYOND: Final = 1e6
"""More than any sum of votes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What holds for every call of a preset on one domain."""

    behaviour: Behaviour
    domain: DomainConstants
    skills: tuple[float, ...]
    """Of each voice on this domain: how able it is beside the mean of the three closed workers."""
    planning: tuple[float, ...]
    """Of each voice: how much better it plans than it solves."""
    checking: tuple[float, ...]
    """Of each voice: how much better it checks than it solves."""
    relatives: tuple[int, ...]
    """Of each voice: which family of models it belongs to."""

    def skill(self, voice: int) -> float:
        """How able the writer of a text in view is; nobody knows a stranger's skill."""
        return self.behaviour.stranger_skill if voice == STRANGER else self.skills[voice]

    def related(self, voice: int, other: int) -> bool:
        """Whether two voices share a part of their errors."""
        return STRANGER not in {voice, other} and self.relatives[voice] == self.relatives[other]


@dataclass(frozen=True, slots=True)
class Seat:
    """A worker before a question."""

    voice: int
    base: Numbers
    """Ability, less the question's difficulty for this worker."""
    favourite: Numbers
    """The wrong answer that this worker's relatives fall for."""
    eye: Numbers
    """How blind this worker is to mistakes on this question: standard normal, the same in every call."""
    limit: float = 0.0
    """Token limit: 0 at the paper's 4096, 1 at five times as many; in between and below by its logarithm."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """One call: who answers, what is in view, and the luck of it."""

    m: Arithmetic
    setting: Setting
    seat: Seat
    plans: tuple[Plan, ...]
    attempts: tuple[Attempt, ...]
    key: Numbers

    @property
    def behaviour(self) -> Behaviour:
        return self.setting.behaviour

    @property
    def domain(self) -> DomainConstants:
        return self.setting.domain

    @property
    def beyond_one(self) -> int:
        """How many replies there are in view besides the first."""
        return max(len(self.plans) + len(self.attempts) - 1, 0)

    def normal(self, stream: int) -> Numbers:
        return self.m.normal(self.key, stream)

    def uniform(self, stream: int) -> Numbers:
        return self.m.uniform(self.key, stream)


def respond(
    m: Arithmetic, setting: Setting, seat: Seat, *, instruction: Instruction, seen: Sequence[State], key: Numbers
) -> State:
    """The reply of a worker; the same arguments give the same reply. All luck comes from the key."""
    plans = tuple(state for state in seen if isinstance(state, Plan))
    attempts = tuple(state for state in seen if isinstance(state, Attempt))
    turn, role = _Turn(m, setting, seat, plans, attempts, key), instruction.role
    if role == "plan":
        return _plan(turn)
    shift = _shift_in_view(turn) - setting.behaviour.wrong_kind * instruction.wrong_kind
    if role == "aggregate" and len(attempts) > 1:
        return _aggregate(turn, shift)
    if role in setting.behaviour.second_look and attempts:
        return _second_look(turn, role, shift)
    return _solve(turn, shift - setting.behaviour.misplaced[role])


def _plan(turn: _Turn) -> Plan:
    m, voice = turn.m, turn.seat.voice
    skill = turn.setting.skill(voice) + turn.setting.planning[voice]
    worth = turn.domain.plan_skill + turn.domain.plan_slope * skill - turn.normal(PLAN)
    misleading = worth < -turn.behaviour.thin_band
    return Plan(voice, m.where(worth > 0, SOUND, m.where(misleading, MISLEADING, THIN)))


def _shift_in_view(turn: _Turn) -> Numbers:
    """What plans in view add to the margin, less the distraction of all that is in view."""
    distraction = turn.domain.load * turn.beyond_one
    if not turn.plans:
        return -distraction
    total: Numbers = 0.0
    for plan in turn.plans:
        total = total + _worth_of(turn, plan)
    return total / len(turn.plans) - turn.domain.plan_cost - distraction


def _worth_of(turn: _Turn, plan: Plan) -> Numbers:
    m, behaviour, gain = turn.m, turn.behaviour, turn.domain.plan_gain
    loss = -behaviour.misled * gain - behaviour.astray
    worth = m.where(plan.quality > 0, gain, m.where(plan.quality < 0, loss, 0.0))
    return worth * (behaviour.own_plan if plan.voice == turn.seat.voice else 1.0)


def _own_answer(turn: _Turn, shift: Numbers) -> Numbers:
    """The answer that a worker finds by itself; none where it runs out of tokens just before the right one."""
    m, seat, long_gain = turn.m, turn.seat, turn.domain.long_gain
    margin = seat.base + shift - turn.domain.luck_sd * turn.normal(LUCK)
    right = margin + long_gain * seat.limit > 0
    cut = m.no(right) & (margin + long_gain > 0)
    shared = turn.uniform(SHARED_WRONG) < turn.behaviour.shared_wrong
    wrong = m.where(shared, seat.favourite, _tempting(turn))
    return m.where(right, RIGHT, m.where(cut, NO_ANSWER, wrong))


def _tempting(turn: _Turn) -> Numbers:
    """One of the wrong answers, the most tempting one most often."""
    share, (first, second) = turn.uniform(WHICH_WRONG), turn.behaviour.temptation
    return turn.m.where(share < first, 1, turn.m.where(share < first + second, 2, 3))


def _solve(turn: _Turn, shift: Numbers) -> Attempt:
    """One's own answer, or, with attempts in view, now and then that of the last one."""
    own = _own_answer(turn, shift)
    if not turn.attempts:
        return _shown(turn, own)
    last, behaviour = turn.attempts[-1], turn.behaviour
    pull = turn.m.where(last.answer == RIGHT, behaviour.pull_right, behaviour.pull_wrong)
    adopts = (turn.normal(ADOPT) < pull) & (last.answer != NO_ANSWER)
    return _shown(turn, turn.m.where(adopts, last.answer, own))


def _second_look(turn: _Turn, role: Role, shift: Numbers) -> Attempt:
    """Keep the last attempt, or put one's own answer in its place."""
    m, target, wording = turn.m, turn.attempts[-1], turn.behaviour.second_look[role]
    right = target.answer == RIGHT
    doubts = _doubts(turn, role) | (target.answer == NO_ANSWER)
    if target.voice == turn.seat.voice:
        gain = m.where(target.answer == NO_ANSWER, -turn.behaviour.cut_again, 0.0)
    else:
        gain = turn.domain.fix + wording.fix
    hint = m.where(target.check == FAILS, turn.domain.hint * wording.hint, 0.0)
    own = _own_answer(turn, shift + m.where(right, -turn.domain.overdone, gain + hint))
    answer = m.where(doubts & (own != NO_ANSWER), own, target.answer)
    return _shown(turn, answer, doubted=doubts)


def _doubts(turn: _Turn, role: Role) -> Truths:
    """Whether a worker doubts the last attempt: a true find if it is wrong, a false alarm if it is right."""
    behaviour, domain, seat, target = turn.behaviour, turn.domain, turn.seat, turn.attempts[-1]
    skill, wording = turn.setting.skill(seat.voice) + turn.setting.checking[seat.voice], behaviour.second_look[role]
    suspicion, blind = _suspicion(turn), _blindness(turn, target)
    keeps = domain.keep + domain.keep_slope * skill + wording.keep + behaviour.loyal * blind - suspicion
    finds = domain.detect + domain.detect_slope * skill + wording.detect - blind + suspicion
    alarm = -(keeps - behaviour.crowd * turn.beyond_one)
    moment = behaviour.eye_weight * seat.eye + behaviour.moment_weight * turn.normal(DOUBT)
    return moment < turn.m.where(target.answer == RIGHT, alarm, finds)


def _blindness(turn: _Turn, target: Attempt) -> float:
    """One's own mistakes look right, and a relative's a little."""
    if target.voice == turn.seat.voice:
        return turn.behaviour.self_blind
    return turn.behaviour.relative_blind if turn.setting.related(target.voice, turn.seat.voice) else 0.0


def _suspicion(turn: _Turn) -> Numbers:
    """What shows of the last attempt's worth, and how the other attempts in view agree with it."""
    m, behaviour, target = turn.m, turn.behaviour, turn.attempts[-1]
    total = m.where(target.check == FAILS, behaviour.seen_fail, 0.0)
    total = total - m.where(target.check == PASSES, behaviour.seen_pass, 0.0)
    total = total + m.where(target.hedged, behaviour.seen_hedge, 0.0)
    total = total + m.where(target.slipped, behaviour.seen_slip, 0.0)
    for other in turn.attempts[:-1]:
        agreement = m.where(other.answer == target.answer, -behaviour.agree, behaviour.disagree)
        total = total + m.where(other.answer == NO_ANSWER, 0.0, agreement)
    return total


def _aggregate(turn: _Turn, shift: Numbers) -> Attempt:
    """The answer with the most weight of votes: one's own view, and the attempts by how well they read."""
    m, own = turn.m, _own_answer(turn, shift)
    votes = [_vote(turn, at) for at in range(len(turn.attempts))]
    best, most = own, -_BEYOND
    for answer in (*range(WRONG + 1), OTHER):
        named = own == answer
        weight = m.where(named, turn.domain.own_vote, 0.0)
        for attempt, vote in zip(turn.attempts, votes, strict=True):
            names_it = attempt.answer == answer
            named, weight = named | names_it, weight + m.where(names_it, vote, 0.0)
        leads = named & (weight > most)
        best, most = m.where(leads, answer, best), m.where(leads, weight, most)
    return _shown(turn, best)


def _vote(turn: _Turn, at: int) -> Numbers:
    behaviour, attempt = turn.behaviour, turn.attempts[at]
    weight = max(1.0 + behaviour.vote_slope * turn.setting.skill(attempt.voice), behaviour.least_vote)
    weight *= behaviour.self_bias if attempt.voice == turn.seat.voice else 1.0
    weight = weight + turn.domain.muddle * turn.normal(READING + at)
    return weight * turn.m.where(attempt.check == FAILS, behaviour.failed_vote, 1.0)


def _shown(turn: _Turn, answer: Numbers, *, doubted: Truths = False) -> Attempt:
    """The attempt with what shows of its worth. Nothing of it is certain; a cut reply shows that it is cut."""
    m, rates = turn.m, turn.behaviour.evidence
    right, whole = answer == RIGHT, answer != NO_ANSWER
    fails = m.where(right, rates.fails.right, m.where(doubted, rates.fails_doubted, rates.fails.wrong))
    passes = m.where(right, rates.passes.right, m.where(doubted, rates.passes_doubted, rates.passes.wrong))
    share = turn.uniform(CHECK)
    check = m.where(share < fails, FAILS, m.where(share < fails + passes, PASSES, UNCHECKED))
    hedged = turn.uniform(HEDGE) < m.where(right, rates.hedged.right, rates.hedged.wrong)
    slipped = turn.uniform(SLIP) < m.where(right, rates.slipped.right, rates.slipped.wrong)
    check = m.where(whole, check, UNCHECKED)
    return Attempt(turn.seat.voice, answer, check, whole & hedged, whole & slipped, m.no(whole))
