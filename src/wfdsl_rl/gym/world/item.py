"""An item of the gym: what there is to know about one of its questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wfdsl_rl.tasks.task import CodeTests, Kind


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its computed answer. The text of the question determines all the rest."""

    question: str
    """One paragraph, or several lines; never an empty line, which is where a subtask begins."""
    family: str
    """Which generator it comes from, such as `algebra`."""
    kind: Kind
    """How answers are judged; the paper's four domains are the kinds math, choice, text and code."""
    gold: str
    """The true answer, computed; of code items a right program."""
    wrong: tuple[str, ...]
    """Plausible wrong answers, the most tempting first: at least three, each different and judged wrong."""
    template: str
    """Which wording it has. Wordings are split into those for training and those that are held out."""
    difficulty: float
    """What the numbers in it add to its difficulty, about standard normal within a family."""
    choices: tuple[str, ...] = ()
    """The options of a choice question."""
    tests: CodeTests | None = None
    """The tests of a code question."""
