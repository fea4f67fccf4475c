"""The world: what each worker can do, and what comes of a step, as a distribution over outcomes.

The workers and the exact optimum both use `results_of`, so they cannot disagree. A worker sees the earlier replies of
its step and the role that its subtask gives it. Nothing else that a Conductor writes has an effect.

A plan is good or bad. A good one helps to solve some kinds. A check keeps a right answer nearly always; it finds a
wrong one by the checker's skill, except for the mistake that the checker would make itself, and then solves again.
A combination of several answers picks a right one by the skill of its judge. All numbers are our choice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from wfdsl_rl.gym.questions import KINDS, WRONG_ANSWERS, Kind

Role: TypeAlias = Literal["plan", "solve", "check", "combine"]
ROLES: Final[tuple[Role, ...]] = ("plan", "solve", "check", "combine")
_ROLE_WORDS: Final[dict[str, Role]] = {
    **dict.fromkeys(("plan", "outline", "approach", "strategy"), "plan"),
    **dict.fromkeys(("check", "verify", "review", "correct"), "check"),
    **dict.fromkeys(("combine", "compare", "merge", "choose"), "combine"),
}
_ROLE_WORD: Final = re.compile(rf"\b({'|'.join(_ROLE_WORDS)})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Plan:
    """A reply that says how to solve the question."""

    good: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply with an answer."""

    wrong: int
    """0: it is right; else which of the wrong answers of its kind it is, from 1."""


State: TypeAlias = Plan | Answer
RIGHT: Final = Answer(0)


class Result(NamedTuple):
    """One thing that a step may come to."""

    chance: float
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What a simulated worker can do. Shares are between 0 and 1."""

    name: str
    """What a Conductor is shown. It does not tell what the worker leads in."""
    solves: tuple[float, float, float, float]
    """The share of questions of each kind, in the order of `KINDS`, that it solves alone."""
    plans: float = 0.3
    """The share of its plans that are good."""
    finds: float = 0.3
    """The share of wrong answers that its check finds, where checks are easy."""
    judges: float = 0.5
    """How often it picks the right one of differing answers."""
    usd: float = 1.0
    """US dollars per million output tokens; input costs a quarter."""


WORKERS: Final = (
    Worker(name="alder", solves=(0.45, 0.44, 0.45, 0.46), plans=0.5, finds=0.5, judges=0.6, usd=8),
    Worker(name="birch", solves=(0.76, 0.32, 0.32, 0.32), usd=2),
    Worker(name="cedar", solves=(0.34, 0.60, 0.34, 0.34), usd=2),
    Worker(name="elm", solves=(0.28, 0.28, 0.90, 0.28), usd=2),
    Worker(name="fir", solves=(0.28, 0.28, 0.28, 0.92), usd=2),
    Worker(name="hazel", solves=(0.42, 0.40, 0.40, 0.41), finds=0.85, judges=0.75, usd=1),
    Worker(name="larch", solves=(0.41, 0.39, 0.40, 0.40), plans=0.95, finds=0.4, usd=1),
)
"""On average over the kinds, all solve about equally much alone: only a choice by kind gains."""


class Traits(NamedTuple):
    """What helps on a kind of question."""

    plan_helps: float
    """The share of unsolved questions that a good plan makes solvable."""
    check_ease: float
    """Factor on the share of mistakes that a check finds."""
    kept: float
    """The share of right answers that a check leaves as they are."""
    judge_ease: float
    """Factor on how often the right one of differing answers is picked."""


TRAITS: Final[dict[Kind, Traits]] = {
    "sums": Traits(plan_helps=0.1, check_ease=1.0, kept=0.985, judge_ease=1.0),
    "dates": Traits(plan_helps=0.65, check_ease=0.35, kept=0.97, judge_ease=0.8),
    "words": Traits(plan_helps=0.0, check_ease=0.4, kept=0.97, judge_ease=0.7),
    "animals": Traits(plan_helps=0.0, check_ease=0.1, kept=0.93, judge_ease=0.5),
}
_DISTRACTS: Final = 0.9
"""Factor on the chance to solve with a bad plan in view, or with any plan where plans do not help."""
_NOTHING_TO_DO: Final = 0.9
"""Factor on the chance to solve for a worker that is to check or combine, and sees no answer."""
_BLIND: Final = 0.25
"""Factor on the chance to find a mistake that the checker would make itself."""
_FOREWARNED: Final = 0.15
"""Added to the chance to solve for a checker that has found a mistake."""


def role_of(subtask: str) -> Role:
    """The role that a subtask gives: by the first word of `_ROLE_WORDS` in it, and to solve without one."""
    found = _ROLE_WORD.search(subtask)
    return "solve" if found is None else _ROLE_WORDS[found[1].lower()]


def own_mistake(worker: int, kind: Kind) -> Answer:
    """The wrong answer that a worker gives."""
    return Answer(1 + worker % WRONG_ANSWERS[kind])


@lru_cache(maxsize=65536)
def results_of(kind: Kind, worker: int, role: Role, seen: tuple[State, ...]) -> tuple[Result, ...]:
    """What a step may come to, given the earlier replies that it sees in order; the chances sum to 1."""
    does = WORKERS[worker]
    answers = [state for state in seen if isinstance(state, Answer)]
    if role == "plan":
        return _either(does.plans, Plan(good=True), Plan(good=False))
    if role == "check" and answers:
        return _checked(kind, worker, answers[-1])
    if role == "combine" and answers:
        return _combined(does.judges * TRAITS[kind].judge_ease, answers)
    chance = _solves(kind, worker, seen) * (1.0 if role == "solve" else _NOTHING_TO_DO)
    return _either(chance, RIGHT, own_mistake(worker, kind))


def _solves(kind: Kind, worker: int, seen: Sequence[State]) -> float:
    alone = WORKERS[worker].solves[KINDS.index(kind)]
    plan = next((state for state in reversed(seen) if isinstance(state, Plan)), None)
    if plan is None:
        return alone
    helps = TRAITS[kind].plan_helps
    return alone + (1 - alone) * helps if plan.good and helps else alone * _DISTRACTS


def _checked(kind: Kind, worker: int, answer: Answer) -> tuple[Result, ...]:
    mistake, traits = own_mistake(worker, kind), TRAITS[kind]
    if answer == RIGHT:
        return _either(traits.kept, RIGHT, mistake)
    finds = WORKERS[worker].finds * traits.check_ease * (_BLIND if answer == mistake else 1.0)
    solves = min(1.0, WORKERS[worker].solves[KINDS.index(kind)] + _FOREWARNED)
    results = (Result(1 - finds, answer), Result(finds * solves, RIGHT), Result(finds * (1 - solves), mistake))
    return tuple(result for result in results if result.chance)


def _combined(judges: float, answers: Sequence[Answer]) -> tuple[Result, ...]:
    wrong = [answer for answer in answers if answer != RIGHT]
    if not wrong:
        return (Result(1.0, RIGHT),)
    if len(wrong) == len(answers):
        return (Result(1.0, wrong[-1]),)
    return _either(judges, RIGHT, wrong[-1])


def _either(chance: float, first: State, second: State) -> tuple[Result, ...]:
    return tuple(result for result in (Result(chance, first), Result(1 - chance, second)) if result.chance)
