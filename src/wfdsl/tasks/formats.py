"""Formats of known data sets: how they are recognised by their columns, and the function that reads a row.

A format is recognised only by columns that no other data set has, or by its name in the path. Everything else is an
error that names the columns and how to map them: a wrong guess would silently give wrong gold answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wfdsl.errors import UsageError
from wfdsl.tasks import answer_formats, code_formats, trainer_formats
from wfdsl.tasks.conversion import Reader, Values, mapped_task, named_task, own_task


@dataclass(frozen=True, slots=True)
class Format:
    """How the rows of one data set are read."""

    name: str
    summary: str
    """The data sets that have it, for the list of formats."""
    read: Reader
    signatures: tuple[frozenset[str], ...]
    """A row with all columns of one of these has the format."""
    weak_signatures: tuple[frozenset[str], ...] = ()
    """Columns that other data sets have too: they count if the file or data set has the format's name."""
    marks: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Texts that columns must contain."""
    named_by_file: bool = False
    """Whether the source of tasks is the name of their file, since any file may have this format."""


def _columns(*names: str) -> frozenset[str]:
    return frozenset(name.strip() for one in names for name in one.split(","))


_KNOWN = (
    Format("wfdsl", "tasks as `wfdsl data convert` writes them", own_task, (_columns("id,question,gold,kind"),)),
    Format(
        "fields",
        "files whose columns have the names of the fields of tasks: question, gold, and others",
        named_task,
        (_columns("question,gold"),),
        named_by_file=True,
    ),
    Format(
        "math500",
        "MATH-500",
        answer_formats.math,
        (_columns("problem,solution,answer,subject,level,unique_id"),),
    ),
    Format(
        "math",
        "MATH",
        answer_formats.math,
        (_columns("problem,solution,level"),),
        (_columns("problem,solution"), _columns("problem,answer")),
    ),
    Format(
        "aime",
        "AIME of any year",
        answer_formats.aime,
        (_columns("Problem,Answer,ID"), _columns("problem,answer,url,year"), _columns("problem,answer,problem_idx")),
        (
            _columns("problem,answer"),
            _columns("question,answer"),
            _columns("Problem,Answer"),
            _columns("Question,Answer"),
        ),
    ),
    Format("gsm8k", "GSM8K", answer_formats.gsm8k, (_columns("question,answer"),), marks={"answer": "####"}),
    Format("svamp", "SVAMP", answer_formats.svamp, (_columns("Body,Question,Answer"),)),
    Format(
        "rlpr",
        "RLPR, WebInstruct-verified",
        trainer_formats.rlpr,
        (_columns("prompt,reward_model,extra_info"), _columns("question,answer,answer_type")),
        marks={"extra_info": "answer_type"},
    ),
    Format(
        "trainer",
        "rows of verl, PRIME, DAPO, slime, OpenRLHF, verifiers, TRL; questions with answers",
        trainer_formats.trainer,
        tuple(
            frozenset({question, gold})
            for question in ("prompt", "input", "question", "problem", "messages")
            for gold in ("reward_model", "label", "answer", "ground_truth", "solution", "tests", "verification_info")
        ),
    ),
    Format("arc", "ARC, CommonsenseQA", answer_formats.arc, (_columns("question,choices,answerKey"),)),
    Format(
        "triviaqa",
        "TriviaQA",
        answer_formats.triviaqa,
        (_columns("question,question_id,answer"),),
        marks={"answer": "aliases"},
    ),
    Format(
        "mmlu",
        "MMLU (also its own CSV files), MMLU-Pro",
        answer_formats.mmlu,
        (_columns("question,choices,answer"), _columns("question,options,answer"), _columns("question,A,B,C,D,answer")),
    ),
    Format(
        "gpqa",
        "GPQA",
        answer_formats.gpqa,
        (_columns("Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3"),),
    ),
    Format(
        "livecodebench",
        "LiveCodeBench code generation, also its lite versions",
        code_formats.livecodebench,
        (_columns("question_content,question_id,public_test_cases,private_test_cases"),),
    ),
    Format(
        "humaneval",
        "HumanEval",
        code_formats.humaneval,
        (_columns("task_id,prompt,entry_point,canonical_solution,test"),),
    ),
    Format("mbpp", "MBPP, full and sanitized", code_formats.mbpp, (_columns("task_id,code,test_list"),)),
    Format(
        "bigcodebench",
        "BigCodeBench",
        code_formats.bigcodebench,
        (_columns("task_id,complete_prompt,instruct_prompt,entry_point,test"),),
    ),
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


def recognise(row: Values, *, place: str, name: str) -> Format:
    """The format of a row, by its columns, or by the name of its file or data set where several formats have them.

    Raises:
        UsageError: no format fits, or several do. The message names the columns.
    """
    there = {column for column, value in row.items() if value is not None}
    fitting = _closest({known: _fit(known, there, row, is_named=known.name in name.lower()) for known in _KNOWN})
    if len(fitting) != 1:
        raise UsageError(_unclear(fitting, row, place))
    return fitting[0]


def mapping_format(columns: Mapping[str, str]) -> Format:
    """The format of rows whose columns are mapped to the fields of tasks."""
    return Format("columns", "any file", mapped_task(columns), (), named_by_file=True)


def _fit(known: Format, there: set[str], row: Values, *, is_named: bool) -> int:
    """How many columns of the largest signature are there, twice; and one more for marks, or a name that fits."""
    if not all(mark in str(row.get(column)) for column, mark in known.marks.items() if column in row):
        return 0
    weak = known.weak_signatures if is_named else ()
    sizes = [len(signature) for signature in (*known.signatures, *weak) if signature <= there]
    return 2 * max(sizes) + bool(known.marks or weak) if sizes else 0


def _closest(fits: dict[Format, int]) -> list[Format]:
    """The formats with the largest fit."""
    best = max(fits.values(), default=0)
    return [known for known, fit in fits.items() if fit == best > 0]


def _unclear(fitting: list[Format], row: Values, place: str) -> str:
    columns = ", ".join(map(str, row)) or "none"
    if fitting:
        names = " or ".join(known.name for known in fitting)
        return f"{place}: the columns ({columns}) fit the formats {names}: choose with --task-format"
    return (
        f"{place}: no known format has these columns ({columns}): say which columns to use "
        f"(--map question=prompt,gold=answer), or name the format (--task-format {'|'.join(FORMATS)})"
    )
