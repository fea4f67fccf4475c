"""A task: a question, its gold answer and how answers are graded; and files of tasks as JSON lines."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from wfdsl.errors import UsageError
from wfdsl.workers.entry import Strict

Kind: TypeAlias = Literal["math", "choice", "text", "code", "custom"]
_Texts: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]


ANSWER_FORMATS: Mapping[str, str] = {
    "math": "Put the final answer in \\boxed{}.",
    "choice": "End with a line `Answer: X`, where X is the letter of the option.",
    "text": "End with a line `Answer: X`, where X is the answer and nothing else.",
}
"""What the graders ask for, by kind of task, as public benchmarks do. Questions of code tasks say it themselves."""


class CodeTests(Strict):
    """What a program has to do. Expected results never enter the sandbox in which the program runs."""

    style: Literal["stdin", "function", "program"]
    """`stdin`: a program reads `inputs[i]` and prints `expected[i]`. `function`: `entry_point` is called with the JSON
    list of arguments `inputs[i]` and returns the JSON value `expected[i]`. `program`: `checker` is Python source that
    calls `entry_point` and raises if a result is wrong, as HumanEval, MBPP and BigCodeBench have it."""
    inputs: _Texts = ()
    """One text per test."""
    expected: _Texts = ()
    """As many texts as inputs."""
    entry_point: str = ""
    """The function that is called; `Solution.name` for a method of a class that takes no arguments."""
    checker: str = ""
    """The checking source of the style `program`."""
    preamble: str = ""
    """Source that comes before the answer, such as imports or the signature that the question gave."""
    timeout_s: float = Field(default=6.0, gt=0, allow_inf_nan=False)
    """The longest that one test may run, in seconds. Our choice, as in LiveCodeBench's own runner."""

    @model_validator(mode="after")
    def _is_whole(self) -> CodeTests:
        if len(self.inputs) != len(self.expected):
            raise ValueError(f"there are {len(self.inputs)} inputs and {len(self.expected)} expected outputs")
        if self.style == "program" and not self.checker:
            raise ValueError("the style `program` needs a checker")
        if self.style != "program" and not self.inputs:
            raise ValueError(f"the style `{self.style}` needs at least one test")
        if self.style == "function" and not self.entry_point:
            raise ValueError("the style `function` needs an entry_point")
        return self


class Task(Strict):
    """One question with its gold answer."""

    id: str = Field(min_length=1)
    """Unique among the tasks of a source."""
    question: str = Field(min_length=1)
    """What is asked, with the options of a choice question."""
    gold: str
    """The right answer: a LaTeX or plain expression, a letter or a text; for code tasks a solution, or nothing."""
    accepted: _Texts = ()
    """Other answers that are right too."""
    kind: Kind = "math"
    """How answers are graded."""
    answer_format: str = ""
    """The form that an answer is asked for, such as one of `ANSWER_FORMATS`."""
    source: str = ""
    """The data set it comes from."""
    split: str = ""
    """The part of the data set."""
    choices: _Texts = ()
    """The options of a choice question, in the order of their letters."""
    tests: CodeTests | None = None
    """What an answer to a code task has to pass."""
    grader: str = ""
    """Of the kind `custom`: `module:function`, called as `function(task, text) -> bool | float | Verdict`."""
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    """What else is known, such as `level`, `subject` or `domain`."""

    @property
    def asked(self) -> str:
        """The question with the sentence about the form of its answer."""
        return f"{self.question}\n\n{self.answer_format}" if self.answer_format else self.question

    @property
    def domain(self) -> str:
        """The kind of question: `metadata["domain"]` where the data set names one, else the task's kind."""
        return str(self.metadata.get("domain") or self.kind)

    @property
    def golds(self) -> tuple[str, ...]:
        """All answers that are right, the gold one first."""
        return self.gold, *self.accepted

    @model_validator(mode="after")
    def _can_be_graded(self) -> Task:
        if self.kind == "code" and self.tests is None:
            raise ValueError("a code task needs tests")
        if self.kind == "custom" and not self.grader:
            raise ValueError('a custom task needs grader = "module:function"')
        if self.kind == "choice" and self.choices and not gold_letters(self.gold, self.choices):
            raise ValueError(f"the gold answer {self.gold!r} is not one of the {len(self.choices)} options")
        if self.kind not in ("code", "custom") and not self.gold.strip():
            raise ValueError(f"a {self.kind} task needs a gold answer")
        return self


_LETTERS = re.compile(r"\(?([A-Z])\)?(?:\s*(?:,|and|&)?\s*\(?([A-Z])\)?)*\.?")


def gold_letters(gold: str, choices: Sequence[str] = ()) -> set[str]:
    """The letters of a gold answer; none if no option has them, nor is it the text of one."""
    letters = set(re.findall(r"[A-Z]", gold.upper().replace("AND", ",")))
    if _LETTERS.fullmatch(gold.strip().upper()) and letters <= set(ascii_uppercase[: len(choices) or 26]):
        return letters
    said, *named = (" ".join(one.casefold().split()) for one in (gold, *choices[:26]))
    return {ascii_uppercase[named.index(said)]} if said in named else set()


def task_line(task: Task) -> str:
    """A task as one line of JSON, without empty fields."""
    line = task.model_dump_json(exclude_defaults=True)
    # The kind `math` is the default, but files name it: their format is recognised by it.
    return line if task.kind != "math" else line.removesuffix("}") + ',"kind":"math"}'


def save_tasks(path: str | PathLike[str], tasks: Iterable[Task]) -> int:
    """Write tasks to a `.jsonl` or `.jsonl.gz` file, which `load_tasks` reads back as the same tasks.

    Returns:
        The number of tasks.

    Raises:
        UsageError: the file has another suffix, or cannot be written.
    """
    file = Path(path)
    if not file.name.lower().endswith((".jsonl", ".jsonl.gz")):
        raise UsageError(f"{file}: tasks are written to a .jsonl or .jsonl.gz file")
    data = "".join(f"{task_line(task)}\n" for task in tasks).encode()
    try:
        # A fixed time, so that equal tasks give equal files.
        file.write_bytes(gzip.compress(data, mtime=0) if file.suffix.lower() == ".gz" else data)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror or error}") from error
    return data.count(b"\n")
