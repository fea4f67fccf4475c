"""How a simulated worker answers: the state of its reply, from its skill, the question, the instruction and its view.

Pure functions. A reply is right if a margin is positive: ability, less the question's difficulty for this worker, less
the randomness of this call, plus what plans and earlier attempts in view add. The accuracy of single calls is the
paper's. All else is our choice; `wfdsl_rl.gym.world.constants` says which numbers were fitted to the paper's baselines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from wfdsl_rl.gym.world.constants import Behaviour, DomainConstants
from wfdsl_rl.gym.world.randomness import Arithmetic, Numbers, Truths
from wfdsl_rl.gym.world.roles import LAST, Instruction, Role
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
    State,
)

CALL_NOISE, WHICH_WRONG, SHARED_WRONG, PLAN, ADOPT, DOUBT, CHECK, HEDGE, SLIP = range(9)
"""Random streams: one for each random decision in a call."""
ATTEMPT_READ: Final = 16
"""The first of many streams: one for each attempt that an aggregator reads."""
PART_NOISE: Final = 64
"""The first of the streams of a question's further parts."""
_BEYOND: Final = 1e6
"""More than any sum of votes."""


@dataclass(frozen=True, slots=True)
class DomainSetting:
    """What holds for every call of a preset on one domain."""

    behaviour: Behaviour
    domain: DomainConstants
    skills: tuple[float, ...]
    """Of each agent on this domain: how able it is beside the mean of the three closed workers."""
    planning: tuple[float, ...]
    """Of each agent: how much better it plans than it solves."""
    checking: tuple[float, ...]
    """Of each agent: how much better it checks than it solves."""
    relatives: tuple[int, ...]
    """Of each agent: which family of models it belongs to."""

    def skill(self, agent: int) -> float:
        """How able the writer of a text in view is; the skill of a stranger is not known."""
        return self.behaviour.stranger_skill if agent == STRANGER else self.skills[agent]

    def related(self, agent: int, other: int) -> bool:
        """Whether two agents share a part of their errors."""
        return STRANGER not in {agent, other} and self.relatives[agent] == self.relatives[other]


@dataclass(frozen=True, slots=True)
class WorkerOnQuestion:
    """A worker on one question, or on many of them as arrays."""

    agent: int
    """Agent id: an index of `wfdsl_rl.gym.world.profiles.PROFILES`."""
    base: tuple[Numbers, ...]
    """For each part of the question: ability, less the difficulty for this worker."""
    shared_error: Numbers
    """The wrong answer that this worker's relatives fall for."""
    blindness: Numbers
    """The opposite of its error-detection skill on this question: standard normal, the same in every call."""
    limit: float = 0.0
    """Token limit: 0 at the paper's 4096, 1 at five times as many; in between and below by its logarithm."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """One call: who answers, what is in view, and its randomness."""

    m: Arithmetic
    setting: DomainSetting
    worker: WorkerOnQuestion
    instruction: Instruction
    part: int
    """What is asked for: a part of the question, or 0 for the whole."""
    plans: tuple[Plan, ...]
    attempts: tuple[Attempt, ...]
    """At what is asked for."""
    results: tuple[Attempt, ...]
    """Of parts."""
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
        return max(len(self.plans) + len(self.attempts) + len(self.results) - 1, 0)

    def normal(self, stream: int) -> Numbers:
        return self.m.normal(self.key, stream)

    def uniform(self, stream: int) -> Numbers:
        return self.m.uniform(self.key, stream)


def respond(
    m: Arithmetic,
    setting: DomainSetting,
    worker: WorkerOnQuestion,
    *,
    instruction: Instruction,
    seen: Sequence[State],
    key: Numbers,
) -> State:
    """The reply of a worker; the same arguments give the same reply. All randomness comes from the key."""
    domain, behaviour = setting.domain, setting.behaviour
    if instruction.part == LAST:
        instruction = replace(instruction, part=domain.parts)
    part = instruction.part if instruction.part < domain.parts + (not domain.chained) and domain.parts > 1 else 0
    plans = tuple(state for state in seen if isinstance(state, Plan))
    attempts = tuple(state for state in seen if isinstance(state, Attempt) and state.part == part)
    results = tuple(state for state in seen if isinstance(state, Attempt) and state.part not in {part, 0})
    turn = _Turn(m, setting, worker, instruction, part, plans, attempts, results, key)
    if instruction.role == "plan":
        return _plan(turn)
    role, cost = _role_in_view(turn)
    shift = _shift_in_view(turn) - behaviour.wrong_kind * instruction.wrong_kind - cost
    if role == "aggregate" and len(attempts) > 1:
        return _aggregate(turn, shift)
    if role in behaviour.second_look and attempts:
        return _second_look(turn, role, shift)
    return _solve(turn, shift)


def _role_in_view(turn: _Turn) -> tuple[Role, float]:
    """What the worker does, and what the instruction takes from the margin."""
    behaviour, instruction, role = turn.behaviour, turn.instruction, turn.instruction.role
    beyond = instruction.part > turn.domain.parts or (instruction.part > 0 and turn.domain.parts == 1)
    cost = behaviour.misplaced_part if beyond else 0.0
    cost -= _fit(instruction.method, turn.domain.method, behaviour.method_gain, behaviour.method_loss)
    if role == "none" and behaviour.by_view:
        role = "solve" if not turn.attempts else "verify" if len(turn.attempts) == 1 else "aggregate"
    if role == "solve" or (role in behaviour.second_look and turn.attempts):
        return role, cost
    return role, cost + (0.0 if turn.results else behaviour.misplaced[role])


def _fit(named: str, fitting: str, gain: float, loss: float) -> float:
    """What it is worth that an instruction names a method, or a check."""
    return 0.0 if not named else gain if named == fitting else -loss


def _plan(turn: _Turn) -> Plan:
    m, agent = turn.m, turn.worker.agent
    skill = turn.setting.skill(agent) + turn.setting.planning[agent]
    worth = turn.domain.plan_skill + turn.domain.plan_slope * skill - turn.normal(PLAN)
    misleading = worth < -turn.behaviour.thin_band
    return Plan(agent, m.where(worth > 0, SOUND, m.where(misleading, MISLEADING, THIN)))


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
    return worth * (behaviour.own_plan if plan.agent == turn.worker.agent else 1.0)


def _own_answer(turn: _Turn, shift: Numbers) -> Numbers:
    """The answer that a worker finds by itself; none where it runs out of tokens just before the right one."""
    m, worker, long_gain = turn.m, turn.worker, turn.domain.long_gain
    todo, taken = _work(turn)
    shift = shift - turn.domain.span * max(len(todo) - 1, 0)
    right: Truths = True
    nearly: Truths = True
    for result in taken:
        right, nearly = right & (result.answer == RIGHT), nearly & (result.answer == RIGHT)
    for at in todo:
        margin = worker.base[at] + shift - turn.domain.noise_sd * turn.normal(PART_NOISE + at if at else CALL_NOISE)
        right, nearly = right & (margin + long_gain * worker.limit > 0), nearly & (margin + long_gain > 0)
    cut = m.no(right) & nearly
    shared = turn.uniform(SHARED_WRONG) < turn.behaviour.shared_wrong
    wrong = m.where(shared, worker.shared_error, _tempting(turn))
    return m.where(right, RIGHT, m.where(cut, NO_ANSWER, wrong))


def _work(turn: _Turn) -> tuple[list[int], list[Attempt]]:
    """The parts that a worker has to do itself, from 0, and the results in view that it takes over.

    Of several results of a part it takes the last one. A chain continues from the latest part that is in view.
    """
    latest = {result.part: result for result in turn.results}
    if turn.domain.chained:
        end = (turn.part or turn.domain.parts) - 1
        start = max((part for part in latest if part <= end), default=0)
        return list(range(start, end + 1)), [latest[start]] if start else []
    wanted = [turn.part] if turn.part else range(1, turn.domain.parts + 1)
    return [part - 1 for part in wanted if part not in latest], [latest[part] for part in wanted if part in latest]


def _tempting(turn: _Turn) -> Numbers:
    """One of the wrong answers, the most tempting one most often."""
    share, (first, second) = turn.uniform(WHICH_WRONG), turn.behaviour.temptation
    return turn.m.where(share < first, 1, turn.m.where(share < first + second, 2, 3))


def _solve(turn: _Turn, shift: Numbers) -> Attempt:
    """One's own answer, or, with attempts in view, sometimes the last one's."""
    own = _own_answer(turn, shift)
    if not turn.attempts:
        return _shown(turn, own)
    last, behaviour = turn.attempts[-1], turn.behaviour
    pull = turn.m.where(last.answer == RIGHT, behaviour.pull_right, behaviour.pull_wrong)
    adopts = (turn.normal(ADOPT) < pull) & (last.answer != NO_ANSWER)
    return _shown(turn, turn.m.where(adopts, last.answer, own))


def _second_look(turn: _Turn, role: Role, shift: Numbers) -> Attempt:
    """Keep the last attempt, or replace it by one's own answer."""
    m, target, wording = turn.m, turn.attempts[-1], turn.behaviour.second_look[role]
    right = target.answer == RIGHT
    doubts = _doubts(turn, role) | (target.answer == NO_ANSWER)
    if target.agent == turn.worker.agent:
        gain = m.where(target.answer == NO_ANSWER, -turn.behaviour.cut_again, 0.0)
    else:
        gain = turn.domain.fix + wording.fix
    hint = m.where(target.check == FAILS, turn.domain.hint * wording.hint, 0.0)
    own = _own_answer(turn, shift + m.where(right, -turn.domain.overdone, gain + hint))
    answer = m.where(doubts & (own != NO_ANSWER), own, target.answer)
    return _shown(turn, answer, doubted=doubts)


def _doubts(turn: _Turn, role: Role) -> Truths:
    """Whether a worker doubts the last attempt: a true find if it is wrong, a false alarm if it is right."""
    behaviour, domain, worker, target = turn.behaviour, turn.domain, turn.worker, turn.attempts[-1]
    skill, wording = turn.setting.skill(worker.agent) + turn.setting.checking[worker.agent], behaviour.second_look[role]
    suspicion, blind = _suspicion(turn), _blindness(turn, target)
    keeps = domain.keep + domain.keep_slope * skill + wording.keep + behaviour.loyal * blind - suspicion
    finds = domain.detect + domain.detect_slope * skill + wording.detect - blind + suspicion + _focus(turn)
    alarm = -(keeps - behaviour.crowd * turn.beyond_one)
    moment = behaviour.blindness_weight * worker.blindness + behaviour.moment_weight * turn.normal(DOUBT)
    return moment < turn.m.where(target.answer == RIGHT, alarm, finds)


def _focus(turn: _Turn) -> float:
    """What the wording of a check adds to finding mistakes, or takes from it."""
    behaviour = turn.behaviour
    return _fit(turn.instruction.check, turn.domain.check, behaviour.check_gain, behaviour.check_loss)


def _blindness(turn: _Turn, target: Attempt) -> float:
    """One's own mistakes look right, and a relative's a little."""
    if target.agent == turn.worker.agent:
        return turn.behaviour.self_blind
    related = turn.setting.related(target.agent, turn.worker.agent)
    return turn.behaviour.relative_blind + turn.domain.relative_blind if related else 0.0


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
    weight = max(1.0 + behaviour.vote_slope * turn.setting.skill(attempt.agent), behaviour.least_vote)
    weight *= behaviour.self_bias if attempt.agent == turn.worker.agent else 1.0
    weight = weight + turn.domain.muddle * turn.normal(ATTEMPT_READ + at)
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
    return Attempt(turn.worker.agent, answer, check, whole & hedged, whole & slipped, m.no(whole), turn.part)
