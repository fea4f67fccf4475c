"""Replies as texts: what a simulated worker writes, and how another one reads it.

`render` and `read` are inverse on states. Texts that no worker of the gym has written are read as a grader would read
them: their final answer counts, with the agent id `STRANGER`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from wfdsl_rl.gym.world import wording
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.profiles import Domain
from wfdsl_rl.gym.world.questions import domain_of
from wfdsl_rl.gym.world.randomness import Scalars, text_key
from wfdsl_rl.gym.world.roles import Role
from wfdsl_rl.gym.world.states import (
    FAILS,
    NO_ANSWER,
    OTHER,
    PASSES,
    STRANGER,
    THIN,
    UNCHECKED,
    WRONG,
    Attempt,
    Plan,
    State,
)

_SCALARS: Final = Scalars()
_OPENING, _WORKING, _ROLE, _CHECK, _HEDGE, _SLIP, _END, _PLAN = range(100, 108)
"""Streams of noise that choose between wordings."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What a text says."""

    state: State
    given: str = ""
    """The answer as written in the text, if there is one."""


def render(state: State, item: Item, role: Role, key: int, *, something_in_view: bool, other: str = "") -> str:
    """The text of a reply; `key` chooses the wording, `other` is the answer of a state whose answer is `OTHER`."""
    if isinstance(state, Plan):
        return f"{_one_of(wording.OPENINGS[state.agent], key, _OPENING)}\n{_plan_of(state, item, key)}"
    manner = (wording.SECOND if something_in_view else wording.MISPLACED).get(role, ())
    return "\n".join(_attempt_lines(state, item, manner, key, other))


def _plan_of(plan: Plan, item: Item, key: int) -> str:
    return _one_of(wording.PLANS[domain_of(item)][plan.quality], key, _PLAN)


def _attempt_lines(state: Attempt, item: Item, manner: Sequence[str], key: int, other: str) -> list[str]:
    domain = domain_of(item)
    lines = [_one_of(wording.OPENINGS[state.agent], key, _OPENING)]
    lines += [_one_of(manner, key, _ROLE)] if manner else []
    lines.append(_one_of(wording.WORKING[domain], key, _WORKING))
    lines += [wording.PARTS[state.part - 1]] if state.part else []
    if state.answer == NO_ANSWER:
        return [*lines, _one_of(wording.CUT, key, _END)]
    lines += [_one_of(wording.CHECKS[state.check], key, _CHECK)] if state.check != UNCHECKED else []
    lines += [_one_of(wording.HEDGES, key, _HEDGE)] if state.hedged else []
    lines += [_one_of(wording.SLIPS[domain], key, _SLIP)] if state.slipped else []
    answer = other if state.answer == OTHER else answers_of(item, state.part)[state.answer]
    return [*lines, _one_of(wording.ANSWERS[domain], key, _END).format(answer.rstrip("\n"))]


def answers_of(item: Item, part: int = 0) -> tuple[str, ...]:
    """The right answer to a part or the whole, and the wrong ones that workers give, by their numbers."""
    return item.parts[part - 1] if part else (item.gold, *item.wrong[:WRONG])


def read(text: str, item: Item) -> ParsedReply:
    """What a text says to a worker that knows the question."""
    lines = text.split("\n")
    agent = _AGENT_OF.get(lines[0])
    if agent is None:
        return _stranger(text, item)
    domain = domain_of(item)
    quality = _QUALITY_OF[domain].get(lines[1]) if len(lines) == 2 else None
    if quality is not None:
        return ParsedReply(Plan(agent, quality))
    part, given = next((_PART_OF[line] for line in lines if line in _PART_OF), 0), _given(lines, domain)
    if given is None:
        return (
            ParsedReply(Attempt(agent, NO_ANSWER, cut=True, part=part)) if lines[-1] in _CUTS else _stranger(text, item)
        )
    answer = _numbers(answers_of(item, part)).get(given, OTHER)
    return ParsedReply(_with_meaning(agent, answer, _meanings(lines[1:-1]), part), given)


def signs_in(text: str) -> tuple[str, ...]:
    """What a reply says about its own answer, each once and sorted: that a check passes or fails, that it is not sure
    (hedged), that something is left open (slipped), that it was cut. Nothing else in a text is looked at.
    """
    lines = text.split("\n")
    return tuple(sorted(_meanings(lines) | ({"cut"} if lines[-1] in _CUTS else set())))


def _meanings(lines: Sequence[str]) -> set[str]:
    return {_MEANING[line] for line in lines if line in _MEANING}


def _with_meaning(agent: int, answer: int, meanings: set[str], part: int) -> Attempt:
    check = FAILS if "fails" in meanings else PASSES if "passes" in meanings else UNCHECKED
    return Attempt(agent, answer, check, "hedged" in meanings, "slipped" in meanings, part=part)


def _given(lines: list[str], domain: Domain) -> str | None:
    """The answer in a text of the gym's own form."""
    if domain == "code":
        if "```python" not in lines or lines[-1] != "```":
            return None
        return "\n".join(lines[lines.index("```python") + 1 : -1])
    for pattern in _ENDINGS[domain]:
        found = pattern.fullmatch(lines[-1])
        if found:
            return found[1]
    return None


def _stranger(text: str, item: Item) -> ParsedReply:
    """A text of another origin: its final answer, as the graders find it; without one it is as good as a thin plan."""
    from wfdsl.grading.extraction import final_answer  # noqa: PLC0415  (start-up time: strangers are rare)

    given = final_answer(text, item.kind, choices=item.choices)
    if given is None:
        return ParsedReply(Plan(STRANGER, THIN))
    answers = tuple(_plain(answer) for answer in answers_of(item))
    return ParsedReply(Attempt(STRANGER, _numbers(answers).get(_plain(given), OTHER)), given)


def _plain(answer: str) -> str:
    return re.sub(r"\s+", "", answer).casefold()


@lru_cache(maxsize=1024)
def _numbers(answers: tuple[str, ...]) -> Mapping[str, int]:
    """The number of each answer; the first one, if two are alike."""
    return {answer.rstrip("\n"): number for number, answer in reversed(list(enumerate(answers)))}


def _one_of(texts: Sequence[str], key: int, stream: int) -> str:
    return texts[int(_SCALARS.uniform(key, stream) * len(texts))]


def wording_key(key: int) -> int:
    """The key that chooses the wording of a call's reply."""
    return _SCALARS.joined(key, _WORDING)


_WORDING: Final = text_key("wording")
_AGENT_OF: Final = {opening: agent for agent, openings in enumerate(wording.OPENINGS) for opening in openings}
_QUALITY_OF: Final = {
    domain: {text: quality for quality, texts in plans.items() for text in texts}
    for domain, plans in wording.PLANS.items()
}
_MEANING: Final = {
    **dict.fromkeys(wording.CHECKS[PASSES], "passes"),
    **dict.fromkeys(wording.CHECKS[FAILS], "fails"),
    **dict.fromkeys(wording.HEDGES, "hedged"),
    **{text: "slipped" for texts in wording.SLIPS.values() for text in texts},
}
_PART_OF: Final = {text: number for number, text in enumerate(wording.PARTS, start=1)}
_CUTS: Final = frozenset(wording.CUT)
_ENDINGS: Final = {
    domain: tuple(
        re.compile(re.escape(form.format("\0")).replace("\0", "(.*)").replace("\\(.*)", "(.*)")) for form in forms
    )
    for domain, forms in wording.ANSWERS.items()
}
