"""The best workflows of a preset: for each family of questions, and one for all. What a Conductor could reach at most.

A workflow has up to five steps, each with any worker, any instruction of a closed vocabulary, and any set of earlier
steps in view. All workflows of one step are tried, and of two where there are not too many. Others are found by search:
from the best shorter ones with a step put in anywhere, from usual structures and from random ones, steps are changed
for as long as it helps. Finalists are compared with other luck than the search had, and the winner is judged on other
questions, without the steps that its answer does not depend on. Since lengths are searched one by one, a price of a
step changes which length is best, and nothing else.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import sqrt
from typing import Final, TypeAlias

from tests.benchmarks.gym_teams import SUBTASKS, structures
from wfdsl_rl.gym.world.accuracy import Questions, expected_accuracy, right_answers
from wfdsl_rl.gym.world.making import items
from wfdsl_rl.gym.world.optimum import MAX_STEPS, Choice, Found, Team, live, pruned, workflow_of
from wfdsl_rl.gym.world.presets import Preset
from wfdsl_rl.gym.world.profiles import DOMAINS
from wfdsl_rl.gym.world.questions import stream_of
from wfdsl_rl.gym.world.roles import instruction_of
from wfdsl_rl.gym.world.simulate import SimulatedCall
from wfdsl_rl.gym.world.states import State

_METHODS: Final = {"steps": "Go step by step.", "list": "Make a list.", "cases": "Try small cases."}
_CHECKS: Final = {
    "steps": "Check each step.",
    "again": "Do it again.",
    "facts": "Which facts are needless?",
    "edges": "Mind edge cases.",
}
_MEMORY: Final = 200_000_000
"""Bytes of states that are kept, about."""

Change: TypeAlias = tuple[tuple[int, int | None, str | None, tuple[int, ...] | None], ...]
"""For some steps: place, and new worker, subtask and view; None for what stays."""


def vocabulary(preset: Preset, family: str = "") -> tuple[str, ...]:
    """The subtasks of a search: for all families, or those that can help on one.

    Of a family, only the parts that it has, and the method and the check that fit it: others only take something away.
    """
    roles, families = tuple(SUBTASKS.values()), preset.families or {}
    wanted = [families[family]] if family in families else list(families.values())
    most = max((one.parts for one in wanted), default=1)
    solving = [SUBTASKS["S"], *(f"Solve part {number}." for number in range(1, most + 1) if most > 1)]
    methods = sorted({_METHODS[one.method] for one in wanted if one.method})
    checks = sorted({f"Check the answer. {_CHECKS[one.check]}" for one in wanted if one.check})
    return (*roles, *solving[1:], *(f"{each} {method}" for each in solving for method in methods), *checks)


SAYS_NOTHING: Final = ("Work on the problem.",)
"""The vocabulary of a search without instructions."""


class Scores:
    """The mean accuracy of teams on some families of questions, with common luck; all domains count alike.

    A step's state follows from its place, worker, instruction and what it sees, so each is computed once.
    """

    def __init__(self, sets: Sequence[Questions], *, draws: int = 1, stream: str = "search") -> None:
        self._inputs = [(one.input, len(one), one.preset.domain_of(one.family)) for one in sets]
        self._streams = [stream_of(f"{stream} {draw}", {}) for draw in range(draws)]
        self._weights = weights_of(sets)
        self._most_states = _MEMORY // (16 * max(len(one) for one in sets))
        self._states: dict[tuple[object, ...], State] = {}
        self._known: dict[Team, float] = {}

    def __len__(self) -> int:
        """How many teams have been tried."""
        return len(self._known)

    def __call__(self, team: Team) -> float:
        """The mean accuracy of a team."""
        if team not in self._known:
            if len(self._states) > self._most_states:
                self._states.clear()
            self._known[team] = self._accuracy(team)
        return self._known[team]

    def _accuracy(self, team: Team) -> float:
        total = 0.0
        for number, ((_, size, _), weight) in enumerate(zip(self._inputs, self._weights, strict=True)):
            for stream in self._streams:
                total += weight * float(right_answers(self._final(team, number, stream), size).mean())
        return total / len(self._streams)

    def _final(self, team: Team, number: int, stream: str) -> State:
        given, _, domain = self._inputs[number]
        known: dict[int, tuple[tuple[object, ...], State]] = {}
        for at in live(team):
            worker, subtask, access = team[at]
            instruction = instruction_of(subtask, domain)
            key = (number, stream, at, worker, instruction, *(known[seen][0] for seen in access))
            if key not in self._states:
                call = SimulatedCall(worker, instruction, (at,), stream)
                self._states[key] = call.state(given, [known[seen][1] for seen in access])
            known[at] = (key, self._states[key])
        return known[len(team) - 1][1]


@dataclass(frozen=True)
class Space:
    """All teams of up to five steps."""

    workers: int
    subtasks: tuple[str, ...]

    def choices(self, at: int) -> list[Choice]:
        """The choices of step number `at`."""
        return [(w, text, view) for w in range(self.workers) for text in self.subtasks for view in views(at)]

    def any_team(self, length: int, chance: random.Random) -> Team:
        """A team at random."""
        return tuple(self._any_choice(at, chance) for at in range(length))

    def _any_choice(self, at: int, chance: random.Random) -> Choice:
        view = tuple(earlier for earlier in range(at) if chance.random() < 0.5)
        return chance.randrange(self.workers), chance.choice(self.subtasks), view

    def usual_teams(self, length: int, workers: Sequence[int], chance: random.Random) -> Iterator[Team]:
        """Usual structures with some of these workers: solvers see plans, later steps everything."""
        for structure in structures(length):
            views = [tuple(range(at)) if structure[at] in "VRA" else tuple(range(structure[:at].count("P")))
                     for at in range(length)]  # fmt: skip
            for _ in range(_TRIED_FOR_EACH):
                yield tuple(
                    (chance.choice(workers), SUBTASKS[letter], () if letter == "P" else view)
                    for letter, view in zip(structure, views, strict=True)
                )

    def longer(self, team: Team, chance: random.Random) -> Team:
        """A team with a step put in at random, seen by some of those after it."""
        place = chance.randrange(len(team) + 1)
        rest = []
        for worker, subtask, access in team[place:]:
            moved = [seen + (seen >= place) for seen in access]
            rest.append((worker, subtask, tuple(sorted([*moved, place] if chance.random() < 0.7 else moved))))
        return (*team[:place], self._any_choice(place, chance), *rest)

    def changes(self, length: int) -> tuple[list[Change], list[Change]]:
        """What can be changed: worker and instruction of a step, or what it sees; and the workers of two steps."""
        places, workers = range(length), range(self.workers)
        one: list[Change] = [
            ((at, worker, subtask, None),) for at in places for worker in workers for subtask in self.subtasks
        ]
        seen: list[Change] = [((at, None, None, view),) for at in places for view in views(at)]
        two: list[Change] = [
            ((left, worker, None, None), (right, other, None, None))
            for left, right in combinations(places, 2)
            for worker, other in product(workers, repeat=2)
        ]
        return [*one, *seen], two


_TRIED_FOR_EACH: Final = 4


def views(at: int) -> tuple[tuple[int, ...], ...]:
    """Every set of steps before step `at`."""
    return tuple(view for size in range(at + 1) for view in combinations(range(at), size))


def climb(scores: Scores, space: Space, team: Team, chance: random.Random) -> Team:
    """Take each change that helps, until none does."""
    best, better = scores(team), True
    while better:
        better = False
        for changes in space.changes(len(team)):
            if better:
                break  # two steps are changed where changing one helps no more
            chance.shuffle(changes)
            for change in changes:
                other = _changed(team, change)
                value = scores(other)
                if value > best + 1e-9:
                    team, best, better = other, value, True
    return team


def _changed(team: Team, change: Change) -> Team:
    steps = list(team)
    for at, worker, subtask, view in change:
        old = steps[at]
        steps[at] = (old[0] if worker is None else worker, subtask or old[1], old[2] if view is None else view)
    return tuple(steps)


@dataclass(frozen=True)
class Effort:
    """How long a search is."""

    kept: int = 2
    """Teams of a length that longer ones begin with."""
    tried: int = 200
    """Random steps that are put into each of them."""
    climbs: int = 1
    """Climbs from each of: those of the kept teams, usual structures, random teams."""
    exact: int = 12_000
    """All pairs of steps are tried if they are no more than this."""
    finalists: int = 6


def search(
    sets: Sequence[Questions],
    judges: Sequence[Questions],
    subtasks: tuple[str, ...],
    *,
    effort: Effort = Effort(),
    longest: int = MAX_STEPS,
    starts: Iterable[Team] = (),
    seed: int = 0,
) -> dict[int, Found]:
    """For at most 1, 2 ... steps the best team for these families of questions alike; it also climbs from `starts`."""
    space, chance, scores = Space(len(sets[0].preset.members), subtasks), random.Random(seed), Scores(sets)
    single = {worker: scores(((worker, SUBTASKS["S"], ()),)) for worker in range(space.workers)}
    best_workers = sorted(single, key=lambda worker: -single[worker])[:4]
    found: dict[int, Found] = {}
    begun: list[Team] = []
    for length in range(1, longest + 1):
        teams = set(_candidates(scores, space, length, begun, best_workers, effort, chance))
        for team in [start for start in starts if len(start) == length]:
            teams |= {team, climb(scores, space, team, chance)}
        ranked = sorted(teams, key=lambda team: (-scores(team), team))[: effort.finalists]
        again = Scores(sets, draws=4, stream="finalists")
        begun = sorted(ranked, key=lambda team: (-again(team), team))[: effort.kept]
        found[length] = judged(begun[0], judges)
    return found


def _candidates(
    scores: Scores,
    space: Space,
    length: int,
    begun: Sequence[Team],
    workers: Sequence[int],
    effort: Effort,
    chance: random.Random,
) -> Iterator[Team]:
    if length == 1:
        yield from ((choice,) for choice in space.choices(0))
        return
    firsts, seconds = space.choices(0), space.choices(1)
    if length == 2 and len(firsts) * len(seconds) <= effort.exact:
        yield from product(firsts, seconds)
        return
    pools = [{space.longer(short, chance) for _ in range(effort.tried)} for short in begun]
    pools.append(set(space.usual_teams(length, workers, chance)))
    pools.append({space.any_team(length, chance) for _ in range(effort.climbs)})
    for pool in pools:
        for team in sorted(pool, key=lambda team: (-scores(team), team))[: effort.climbs]:
            yield climb(scores, space, team, chance)


def judged(team: Team, judges: Sequence[Questions], *, draws: int = 16) -> Found:
    """How good the live steps of a team are on families of questions; all domains count alike."""
    team, weights = pruned(team), weights_of(judges)
    found = [expected_accuracy(workflow_of(team), one, draws=draws, stream="judge") for one in judges]
    error = sqrt(sum((weight * one.error) ** 2 for weight, one in zip(weights, found, strict=True)))
    return Found(team, sum(weight * one.value for weight, one in zip(weights, found, strict=True)), error)


def weights_of(sets: Sequence[Questions]) -> list[float]:
    """What each family counts, where all domains count alike: tasks come in equal parts of each."""
    domains = [one.preset.domain_of(one.family) for one in sets]
    count = Counter(domains)
    return [1 / len(count) / count[domain] for domain in domains]


def questions_of(preset: Preset, size: int, *, seed: int) -> dict[str, Questions]:
    """For each family, so many questions of a series."""
    found: dict[str, Questions] = {}
    for domain in DOMAINS:
        families = tuple(preset.ease[domain])
        asked = items(preset.name, domain, size * len(families), seed)
        found |= {name: Questions.of(preset, [one for one in asked if one.family == name]) for name in families}
    return found
