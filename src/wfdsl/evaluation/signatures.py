"""How Conductors fail, in trainings and evaluations: form, misfit workers, reliance on one, rounds without change."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any, Final

from wfdsl.evaluation.workflow_statistics import asked_steps, entropy_bits
from wfdsl.language.workflow import Workflow

_FEWEST: Final = 8
"""Answers of a worker, or later rounds, from which something is concluded. Our choice, as the limits of warnings."""
_VALID: Final = 0.95
"""Source: arXiv 2512.04388 wants more than this share early."""
_LOST: Final = 0.1
"""Share of right answers by which another worker has to be better."""
_RELIES: Final = 0.9
_UNCHANGED: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question that a Conductor answered."""

    kind: str
    workflow: Workflow | None = None
    """The last one that ran; the worker of its last step answered."""
    right: float | None = None
    """The share of right answers; None: not graded."""
    completions: int = 0
    invalid: int = 0
    """Completions that were not valid."""
    later: int = 0
    """Rounds after round 0 that ran a workflow."""
    unchanged: int = 0
    """Those that gave the answer of the round before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signatures:
    """The numbers, with a warning for each that is out of its limits."""

    valid: float | None
    """Share of completions that are valid; None for fixed workflows."""
    lost: Mapping[str, Mapping[str, float]]
    """By kind of question and worker that answered: the accuracy that is lost because the kind's best worker did not
    answer, times how often that worker did. The best one is among those that answered at least 8 questions."""
    share: Mapping[str, Mapping[str, float]]
    """By kind and worker, the part of all calls."""
    entropy_bits: Mapping[str, float]
    """By kind, of these shares."""
    unchanged: float | None
    """Share of later rounds that gave the answer of the round before; None if no later round ran."""
    warnings: Mapping[str, str] = field(default_factory=dict)
    """By what they are about: form, mismatch, reliance, loops. A fixed workflow has none."""

    @property
    def mismatch(self) -> float:
        """The accuracy that is lost because the best worker of a kind did not answer: a mean over kinds."""
        return sum(sum(each.values()) for each in self.lost.values()) / max(len(self.lost), 1)

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values."""
        return {**asdict(self), "mismatch": self.mismatch}


def signatures_of(cases: Iterable[Case], *, names: Mapping[int, str] | None = None) -> Signatures:
    """Look at some cases; `names` are the workers' names by index."""
    every, called = list(cases), names or {}
    calls: dict[str, Counter[str]] = defaultdict(Counter)
    answers: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for case in every:
        asked = [case.workflow[step].worker for step in asked_steps(case.workflow)] if case.workflow else []
        by_name = [each if isinstance(each, str) else called.get(each, f"worker {each}") for each in asked]
        calls[case.kind].update(by_name)
        if by_name and case.right is not None:
            answers[case.kind][by_name[-1]].append(case.right)
    completions, later = sum(case.completions for case in every), sum(case.later for case in every)
    known = {kind: own for kind, own in sorted(calls.items()) if own}
    found = Signatures(
        valid=1 - sum(case.invalid for case in every) / completions if completions else None,
        lost={kind: _lost(own) for kind, own in sorted(answers.items())},
        share={kind: {name: count / own.total() for name, count in own.most_common()} for kind, own in known.items()},
        entropy_bits={kind: entropy_bits(own) for kind, own in known.items()},
        unchanged=sum(case.unchanged for case in every) / later if later else None,
    )
    if not completions:
        return found
    whole = sum(known.values(), Counter[str]())
    return replace(found, warnings=dict([*_of_shares(found, whole, completions, later), *_of_answers(answers)]))


def _best(answers: Mapping[str, list[float]]) -> str | None:
    known = [name for name, own in answers.items() if len(own) >= _FEWEST]
    return max(known, key=lambda name: fmean(answers[name]), default=None)


def _lost(answers: Mapping[str, list[float]]) -> dict[str, float]:
    best, total = _best(answers), sum(map(len, answers.values()))
    if best is None:
        return {}
    top = fmean(answers[best])
    return {name: len(own) / total * max(top - fmean(own), 0.0) for name, own in sorted(answers.items())}


def _of_shares(found: Signatures, calls: Counter[str], completions: int, later: int) -> Iterator[tuple[str, str]]:
    if found.valid is not None and found.valid < _VALID and completions >= _FEWEST:
        yield "form", f"{found.valid:.0%} of the completions are valid, fewer than {_VALID:.0%}"
    for name, count in calls.most_common(1):
        if len(found.share) > 1 and count > _RELIES * calls.total() and calls.total() >= _FEWEST:
            yield "reliance", f"{count / calls.total():.0%} of all calls ask {name}, whatever the kind of question"
    if found.unchanged is not None and found.unchanged > _UNCHANGED and later >= _FEWEST:
        yield "loops", f"{found.unchanged:.0%} of the rounds after round 0 give the same answer again"


def _of_answers(answers: Mapping[str, Mapping[str, list[float]]]) -> Iterator[tuple[str, str]]:
    for kind, own in answers.items():
        best, usual = _best(own), max(own, key=lambda name: len(own[name]))
        if best is None or len(own[usual]) < _FEWEST:
            continue
        first, second = fmean(own[best]), fmean(own[usual])
        noise = 2 * math.sqrt(sum(0.25 / len(own[name]) for name in (best, usual)))
        if first - second > max(_LOST, noise):
            text = f"{kind}: {usual} answers most often, and is right in {second:.0%}; {best} is right in {first:.0%}"
            yield "mismatch", text
