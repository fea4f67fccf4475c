"""Formats of known data sets: how they are recognised by their columns, and the function that reads a row.

A format is recognised only by columns that no other data set has. Everything else is an error that names the columns
and how to map them: a wrong guess would silently give wrong gold answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wfdsl.errors import UsageError
from wfdsl.tasks import answer_formats, code_formats
from wfdsl.tasks.conversion import Reader, Values, named_task, own_task


@dataclass(frozen=True, slots=True)
class Format:
    """How the rows of one data set are read."""

    name: str
    summary: str
    """The data sets that have it, for the list of formats."""
    read: Reader
    signatures: tuple[str, ...]
    """Columns, joined by commas: a row with all columns of one of these has the format."""
    marks: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Texts that columns must contain."""
    named_by_file: bool = False
    """Whether the source of tasks is the name of their file, since any file may have this format."""


_MATH = answer_formats.answered("math")
_RLPR = answer_formats.answered(domain="text")
_ANY = answer_formats.answered()
_KNOWN = (
    Format("wfdsl", "tasks as `wfdsl data convert` writes them", own_task, ("id,question,gold,kind",)),
    Format("fields", "columns with the names of a task's fields", named_task, ("question,gold",), named_by_file=True),
    Format("math500", "MATH-500", _MATH, ("problem,solution,answer,subject,level,unique_id",)),
    Format("math", "MATH", _MATH, ("problem,solution,level",)),
    Format("gsm8k", "GSM8K", _MATH, ("question,answer",), {"answer": "####"}),
    Format("svamp", "SVAMP", answer_formats.svamp, ("Body,Question,Answer",)),
    Format(
        "rlpr",
        "RLPR, WebInstruct-verified",
        _RLPR,
        ("prompt,reward_model,extra_info", "question,answer,answer_type"),
        {"extra_info": "answer_type"},
    ),
    Format(
        "trainer",
        "AIME; rows of verl, PRIME, DAPO, slime, OpenRLHF, verifiers, TRL; questions with answers",
        _ANY,
        tuple(f"{question},{gold}" for question in answer_formats.QUESTIONS for gold in answer_formats.GOLDS),
        named_by_file=True,
    ),
    Format("arc", "ARC, CommonsenseQA", answer_formats.choice, ("question,choices,answerKey",)),
    Format("triviaqa", "TriviaQA", _ANY, ("question,question_id,answer",), {"answer": "aliases"}),
    Format(
        "mmlu",
        "MMLU, MMLU-Pro",
        answer_formats.choice,
        ("question,choices,answer", "question,options,answer", "question,A,B,C,D,answer"),
    ),
    Format("gpqa", "GPQA", answer_formats.gpqa, ("Question,Correct Answer,Incorrect Answer 1",)),
    Format(
        "livecodebench",
        "LiveCodeBench code generation, also its lite versions",
        code_formats.livecodebench,
        ("question_content,question_id,public_test_cases,private_test_cases",),
    ),
    Format("humaneval", "HumanEval", code_formats.humaneval, ("task_id,prompt,entry_point,canonical_solution,test",)),
    Format("mbpp", "MBPP, full and sanitized", code_formats.mbpp, ("task_id,code,test_list",)),
    Format("bigcodebench", "BigCodeBench", code_formats.bigcodebench, ("task_id,complete_prompt,entry_point,test",)),
)

FORMATS: dict[str, Format] = {known.name: known for known in _KNOWN}
"""The known formats, by name."""


def format_named(name: str) -> Format:
    """The format of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in FORMATS:
        raise UsageError(f"there is no format {name!r}: choose one of {', '.join(FORMATS)}")
    return FORMATS[name]


def recognise(row: Values, *, place: str) -> Format:
    """The format of a row, by its columns.

    Raises:
        UsageError: no format fits, or several do. The message names the columns.
    """
    fits = {known: _fit(known, row) for known in _KNOWN}
    best = max(fits.values())
    fitting = [known.name for known, fit in fits.items() if fit == best > 0]
    if len(fitting) == 1:
        return FORMATS[fitting[0]]
    columns = ", ".join(map(str, row)) or "none"
    if fitting:
        raise UsageError(
            f"{place}: the columns ({columns}) fit the formats {' or '.join(fitting)}: choose with --task-format"
        )
    raise UsageError(
        f"{place}: no known format has these columns ({columns}): say which columns to use "
        f"(--map question=prompt,gold=answer), or name the format (--task-format {'|'.join(FORMATS)})"
    )


def _fit(known: Format, row: Values) -> int:
    """How many columns of the largest signature are there, twice; and one more for marks."""
    if not all(mark in str(row.get(column)) for column, mark in known.marks.items() if column in row):
        return 0
    there = {column for column, value in row.items() if value is not None}
    wanted = [set(signature.split(",")) for signature in known.signatures]
    sizes = [len(signature) for signature in wanted if signature <= there]
    return 2 * max(sizes) + bool(known.marks) if sizes else 0
