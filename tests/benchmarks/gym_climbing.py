"""Hill climbing over workflows, as a check on the search: it shares nothing with it but the scores."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.benchmarks.gym_search import Scores, Space, judged
from wfdsl_rl.gym.world.accuracy import Questions
from wfdsl_rl.gym.world.optimum import MAX_STEPS, Found, Team

_PATIENCE: Final = 200
"""Changes that do not help, after which it begins again."""
_KICKS: Final = (2, 3, 4)
"""Random changes of the best team so far, with which it begins again every other time."""
_FINALISTS: Final = 5


def hill_climbing(
    sets: Sequence[Questions],
    judges: Sequence[Questions],
    subtasks: tuple[str, ...],
    more: Callable[[int], bool],
    *,
    seed: int = 0,
) -> Found:
    """Change a team at random, keep what is no worse, and begin again where nothing has helped for long.

    It begins with random teams, or with the best one so far after a few random changes. `more` is asked before each
    team, with the number of teams so far, whether there is time for it.
    """
    chance, space, scores = random.Random(seed), Space(len(sets[0].preset.members), subtasks), Scores(sets)
    ends: dict[Team, float] = {}
    while not ends or more(len(scores)):
        team = _start(ends, space, chance)
        value, failures = scores(team), 0
        while failures < _PATIENCE and more(len(scores)):
            other = _changed(team, space, chance)
            found = scores(other)
            failures = 0 if found > value else failures + 1
            if found >= value:
                team, value = other, found
        ends[team] = value
    again = Scores(sets, draws=4, stream="again")
    return judged(max(sorted(ends, key=lambda one: -ends[one])[:_FINALISTS], key=again), judges)


def _start(ends: Mapping[Team, float], space: Space, chance: random.Random) -> Team:
    if not ends or chance.random() < 0.5:
        return space.any_team(chance.randint(1, MAX_STEPS), chance)
    team = max(ends, key=lambda one: ends[one])
    for _ in range(chance.choice(_KICKS)):
        team = _changed(team, space, chance)
    return team


def _changed(team: Team, space: Space, chance: random.Random) -> Team:
    """A team with one or two things changed: a step more or less, or a worker, an instruction or a view."""
    kind = chance.random()
    if kind < 0.1 and len(team) < MAX_STEPS:
        return space.longer(team, chance)
    if kind < 0.2 and len(team) > 1:
        return _shorter(team, chance.randrange(len(team)))
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(team))
        worker, subtask, view = team[at]
        what = chance.randrange(3)
        if what == 0:
            worker = chance.randrange(space.workers)
        elif what == 1:
            subtask = chance.choice(space.subtasks)
        elif at:
            view = tuple(sorted(set(view) ^ {chance.randrange(at)}))
        team = (*team[:at], (worker, subtask, view), *team[at + 1 :])
    return team


def _shorter(team: Team, place: int) -> Team:
    rest = [
        (worker, subtask, tuple(seen - (seen > place) for seen in view if seen != place))
        for worker, subtask, view in team[place + 1 :]
    ]
    return (*team[:place], *rest)
