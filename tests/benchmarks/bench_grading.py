"""How graders agree with gold answers, how often they accept wrong ones, and how fast they are.

`WFDSL_DATA` names the folder with the data sets: gsm8k_test.jsonl, gsm8k_train.jsonl.gz, svamp_test.jsonl,
mmlu_stem_test.jsonl and math500_test.jsonl, as their authors publish them. Without it there is nothing to measure.
"""

import asyncio
import gzip
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from wfdsl.grading.grade import grade
from wfdsl.grading.math_processes import shared_processes
from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.loading import load_tasks
from wfdsl.tasks.task import Task

NUMBER_PHRASINGS = (
    "{gold}",
    "The answer is {gold}.",
    "**Answer:** {gold}",
    "#### {gold}",
    "Adding 3 and 4 gives 7, then more.\n\nTherefore, the final answer is \\boxed{{{gold}}}.",
    "<think>It may be 77777. Answer: 77777</think>\nSo there are **{gold}** of them.",
    "First I thought: Answer: 99999. Wait, that is wrong.\nFinal Answer: {gold} dollars",
    "We get $x = {gold}$.",
    "The answer is ${gold}, because 2 + 2 = 4.",
    "The total is {grouped}.00.",
)
CHOICE_PHRASINGS = (
    "{gold}",
    "({gold})",
    "{gold}.",
    "{gold}) {option}",
    "The answer is ({gold}) because the others fail.",
    "**Answer: {gold}**",
    "\\boxed{{{gold}}}",
    "A is tempting, but B and C are not it either.\n\nWait, no.\nAnswer: {gold}",
    "<think>Answer: A or B?</think>The correct option is **{gold}**.",
    "Let me see. (A) fails. Therefore the correct answer is {gold}: {option}",
    "Final Answer: $\\boxed{{\\text{{({gold})}}}}$",
)
WRONG_ANSWERS = 10_000
WHOLE = {
    "gsm8k_test.jsonl": 1319,
    "gsm8k_train.jsonl.gz": 7473,
    "svamp_test.jsonl": 1000,
    "mmlu_stem_test.jsonl": 3018,
    "math500_test.jsonl": 500,
    "HumanEval.jsonl.gz": 164,
}
"""Data sets and their rows, as published."""


def main() -> None:
    """Print the tables."""
    folder = os.environ.get("WFDSL_DATA", "")
    if not folder:
        print("grading: set WFDSL_DATA to the folder with the data sets", file=sys.stderr)
        return
    _load_all(Path(folder))
    asyncio.run(_measure(Path(folder)))
    shared_processes().close()


def _load_all(folder: Path) -> None:
    """Load whole data sets: every row is a task, and no id comes twice."""
    for name, rows in WHOLE.items():
        if not (folder / name).is_file():
            print(f"{name:30} is not there")
            continue
        started = time.perf_counter()
        tasks = load_tasks(folder / name)
        seconds = time.perf_counter() - started
        ids = len({task.id for task in tasks})
        print(f"{name:30} {len(tasks):6} of {rows:6} rows are tasks, {ids:6} ids  {seconds:6.2f} s")
    print()


async def _measure(folder: Path) -> None:
    gsm8k = [_task(f"gsm8k/{at}", row["answer"].split("####")[1].strip()) for at, row in enumerate(_gsm8k(folder))]
    svamp = [_task(f"svamp/{row['ID']}", f"{row['Answer']:g}") for row in _rows(folder / "svamp_test.jsonl")]
    mmlu = [_choice_task(at, row) for at, row in enumerate(_rows(folder / "mmlu_stem_test.jsonl"))]
    math500 = list(_rows(folder / "math500_test.jsonl"))
    await _agreement("GSM8K, test and train", [(task, list(_numbers(task))) for task in gsm8k])
    await _agreement("SVAMP", [(task, list(_numbers(task))) for task in svamp])
    await _agreement("MMLU-STEM", [(task, list(_letters(task))) for task in mmlu])
    await _agreement("GSM8K, solutions", [(t, [_solution(r)]) for t, r in zip(gsm8k, _gsm8k(folder), strict=True)])
    tasks = [_task(row["unique_id"], row["answer"]) for row in math500]
    await _agreement("MATH-500, solutions", [(t, [r["solution"]]) for t, r in zip(tasks, math500, strict=True)])
    await _agreement("MATH-500, gold in a box", [(t, [f"So \\boxed{{{t.gold}}}."]) for t in tasks])
    await _agreement("MATH-500, gold rewritten", [(t, texts) for t in tasks if (texts := list(_rewritten(t.gold)))])
    await _agreement("MATH-500, gold in a sentence", [(t, [f"The answer is ${t.gold}$."]) for t in tasks])
    await _false_accepts(gsm8k, svamp, mmlu, tasks)


async def _agreement(name: str, asked: list[tuple[Task, list[str]]]) -> None:
    started = time.perf_counter()
    pairs = [(task, text) for task, texts in asked for text in texts]
    verdicts = await _graded(pairs)
    right = sum(verdict.outcome == "right" for verdict in verdicts)
    seconds = time.perf_counter() - started
    print(f"{name:30} {len(asked):6} golds {len(pairs):7} replies  right {right / len(pairs):8.3%}  {seconds:6.1f} s")
    for (task, text), verdict in zip(pairs, verdicts, strict=True):
        if verdict.outcome != "right":
            took = f"took {verdict.extracted!r} from {text[-60:]!r}"
            print(f"    {verdict.outcome}: {task.id} gold {task.gold!r} {took}: {verdict.reason}")


async def _graded(pairs: list[tuple[Task, str]]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for at in range(0, len(pairs), 500):
        verdicts += await asyncio.gather(*(grade(task, text) for task, text in pairs[at : at + 500]))
    return verdicts


async def _false_accepts(gsm8k: list[Task], svamp: list[Task], mmlu: list[Task], math500: list[Task]) -> None:
    print(f"\nwrong answers, made from gold ones ({WRONG_ANSWERS} in all)")
    draw = random.Random(20251204)
    sources = {"GSM8K": gsm8k, "SVAMP": svamp, "MMLU-STEM": mmlu, "MATH-500": math500}
    for name, tasks in sources.items():
        pairs = [_wrong(draw, draw.choice(tasks)) for _ in range(WRONG_ANSWERS // len(sources))]
        verdicts = await _graded([(task, text) for task, text, _ in pairs])
        counts = Counter(verdict.outcome for verdict in verdicts)
        wrong, unjudged, accepted = (counts[outcome] for outcome in ("wrong", "unjudged", "right"))
        print(f"{name:12} {len(pairs):6}  wrong {wrong:6}  unjudged {unjudged:4}  accepted {accepted:4}")
        for (task, text, how), verdict in zip(pairs, verdicts, strict=True):
            if verdict.outcome != "wrong":
                print(f"    {verdict.outcome}: {how}: gold {task.gold!r}, reply {text[-80:]!r}: {verdict.reason}")


def _wrong(draw: random.Random, task: Task) -> tuple[Task, str, str]:
    makers: dict[str, Callable[[random.Random, Task], str | None]] = (
        _CHOICE_MISTAKES if task.kind == "choice" else _MISTAKES
    )
    while True:
        how = draw.choice(list(makers))
        if made := makers[how](draw, task):
            return task, made, how


def _digit_changed(draw: random.Random, task: Task) -> str | None:
    places = [at for at, letter in enumerate(task.gold) if letter.isdigit()]
    if not places:
        return None
    at = draw.choice(places)
    digit = draw.choice([d for d in "123456789" if d != task.gold[at]])
    return f"The answer is \\boxed{{{task.gold[:at]}{digit}{task.gold[at + 1 :]}}}."


def _digit_added(draw: random.Random, task: Task) -> str | None:
    digit = draw.choice("123456789")
    return f"Answer: {digit}{task.gold}" if task.gold[0].isdigit() and task.gold[0] != "0" else None


def _sign_changed(draw: random.Random, task: Task) -> str | None:
    if task.gold.strip("0.") == "" or task.gold[0] not in "123456789\\":
        return None
    return f"\\boxed{{-{task.gold}}}" if "," not in task.gold.replace("\\!", "") and "pm" not in task.gold else None


def _hedged(draw: random.Random, task: Task) -> str:
    return f"The answer is ${task.gold}$ or $9{draw.randint(10000, 99999)}$."


def _boxes(draw: random.Random, task: Task) -> str:
    return f"It is \\boxed{{{task.gold}}} or \\boxed{{9{draw.randint(10000, 99999)}}}."


def _corrected_away(draw: random.Random, task: Task) -> str:
    return f"\\boxed{{{task.gold}}}\nWait, no. The answer is 9{draw.randint(10000, 99999)}."


def _hidden(draw: random.Random, task: Task) -> str:
    return f"It could have something to do with ${task.gold}$, who knows.\nAnswer: 9{draw.randint(10000, 99999)}"


def _plus_one(draw: random.Random, task: Task) -> str | None:
    return f"$${task.gold} + {draw.randint(1, 9)}$$" if task.gold.lstrip("-").isdigit() else None


def _boxed(answer: str | None, gold: str) -> str | None:
    return f"\\boxed{{{answer}}}" if answer is not None and answer != gold else None


def _bracket_changed(draw: random.Random, task: Task) -> str | None:
    ends = [at for at in range(1, len(task.gold)) if task.gold[at] in ")]" and "," in task.gold]
    at = draw.choice(ends) if ends else 0
    other = {")": "]", "]": ")"}.get(task.gold[at], "")
    return _boxed(task.gold[:at] + other + task.gold[at + 1 :], task.gold) if other else None


def _fraction_turned(draw: random.Random, task: Task) -> str | None:
    found = re.search(r"\\frac\{([^{}]+)\}\{([^{}]+)\}", task.gold)
    turned = f"\\frac{{{found[2]}}}{{{found[1]}}}" if found else ""
    return _boxed(task.gold.replace(found[0], turned), task.gold) if found else None


def _root_dropped(draw: random.Random, task: Task) -> str | None:
    return _boxed(re.sub(r"\\sqrt\{?(\d+)\}?", r"\1", task.gold), task.gold)


def _letter_changed(draw: random.Random, task: Task) -> str | None:
    letters = re.findall(r"(?<![\\a-zA-Z])[a-z](?![a-zA-Z])", task.gold)
    if not letters or set(letters) == {"i"} or len(set(letters)) > 1:
        return None
    changed = re.sub(rf"(?<![\\a-zA-Z]){letters[0]}(?![a-zA-Z])", "w", task.gold)
    return _boxed(changed, task.gold) if "=" not in task.gold and "in" not in task.gold else None


def _word_jumbled(draw: random.Random, task: Task) -> str | None:
    word = re.fullmatch(r"\\text\{([a-zA-Z]{3,})\}", task.gold)
    return _boxed("".join(draw.sample(word[1], len(word[1]))), word[1]) if word else None


def _point_turned(draw: random.Random, task: Task) -> str | None:
    inner = re.fullmatch(r"\(([-\d]+),([-\d]+)\)", task.gold)
    return _boxed(f"({inner[2]},{inner[1]})", task.gold) if inner else None


def _constant_added(draw: random.Random, task: Task) -> str | None:
    is_sum = not re.search(r"[,=({]|text|mbox|circ|_|begin|pm|in", task.gold)
    return _boxed(f"{task.gold} + {draw.randint(1, 9)}", task.gold) if is_sum else None


def _decimals_cut(draw: random.Random, task: Task) -> str | None:
    found = re.fullmatch(r"-?\\d?frac\{(\d+)\}\{(\d+)\}", task.gold)
    value = int(found[1]) / int(found[2]) if found else 0.0
    cut = f"{value:.2f}"
    return _boxed(cut, task.gold) if found and abs(float(cut) - value) > 1e-4 else None


_MISTAKES: dict[str, Callable[[random.Random, Task], str | None]] = {
    "a digit changed": _digit_changed,
    "a digit added": _digit_added,
    "the sign changed": _sign_changed,
    "two values with or": _hedged,
    "two boxes with or": _boxes,
    "corrected to a wrong one": _corrected_away,
    "gold hidden in the text": _hidden,
    "a sum instead": _plus_one,
    "a constant added": _constant_added,
    "a bracket changed": _bracket_changed,
    "a fraction turned": _fraction_turned,
    "a root dropped": _root_dropped,
    "another variable": _letter_changed,
    "letters of a word jumbled": _word_jumbled,
    "a point turned": _point_turned,
    "a fraction as two decimals": _decimals_cut,
}


def _other(draw: random.Random, task: Task) -> str:
    return draw.choice([letter for letter in "ABCD" if letter != task.gold])


_CHOICE_MISTAKES: dict[str, Callable[[random.Random, Task], str | None]] = {
    "another letter": lambda draw, task: f"The answer is ({_other(draw, task)}).",
    "another letter, with its reason": lambda draw, task: (
        f"{task.gold} is wrong, so the answer is {_other(draw, task)}."
    ),
    "all letters": lambda draw, task: draw.choice(
        ["A, B, C, D", "Answer: A, B, C and D", "\\boxed{A, B, C, D}", "A/B/C/D"]
    ),
    "two letters": lambda draw, task: f"It is {task.gold} or {_other(draw, task)}.",
    "two boxes": lambda draw, task: f"\\boxed{{{task.gold}}} \\boxed{{{_other(draw, task)}}}",
    "corrected to a wrong one": lambda draw, task: (
        f"Answer: {task.gold}\nWait, that fails. Answer: {_other(draw, task)}"
    ),
    "either, or": lambda draw, task: f"The answer is either {_other(draw, task)} or {task.gold}",
}


def _rewritten(gold: str) -> Iterator[str]:
    """The same value in other words, so that rules on spelling alone do not decide."""
    spellings = {
        gold.replace("\\frac", "\\dfrac").replace("(", "\\left(").replace(")", "\\right)"),
        re.sub(r"^\\frac\{(\d+)\}\{(\d+)\}$", r"\1/\2", gold),
        re.sub(r"^(\d+) ?\\sqrt\{?(\d+)\}?$", r"\1*sqrt(\2)", gold),
        re.sub(r"^(\d+) ?\\pi$", r"\1*pi", gold),
        re.sub(r"^(\S+) ([+-]) (\w+)$", lambda m: f"{'' if m[2] == '+' else '-'}{m[3]} + {m[1]}", gold),
        re.sub(r"^(\d+)$", lambda m: f"{int(m[1]) * 7}/7", gold),
        re.sub(r"^(\d+)$", lambda m: f"\\sqrt{{{int(m[1]) ** 2}}}", gold),
        re.sub(r"^(-?\d+), ?(-?\d{1,2})$", r"\2, \1", gold),
        gold.replace("pmatrix", "bmatrix"),
        gold.replace("\\text{", "\\mathrm{"),
    }
    return (f"Therefore it is $\\boxed{{{spelling}}}$." for spelling in sorted(spellings - {gold}))


def _numbers(task: Task) -> Iterator[str]:
    digits = task.gold.replace(",", "")
    grouped = f"{int(digits):,}" if digits.lstrip("-").isdigit() else ""
    for phrasing in NUMBER_PHRASINGS:
        if grouped or "{grouped}" not in phrasing:
            yield phrasing.format(gold=task.gold, grouped=grouped)


def _letters(task: Task) -> Iterator[str]:
    option = task.choices["ABCD".index(task.gold)]
    return (phrasing.format(gold=task.gold, option=option) for phrasing in CHOICE_PHRASINGS)


def _solution(row: dict[str, Any]) -> str:
    """The worked solution without its last line, which names the answer."""
    return str(row["answer"]).split("####")[0]


def _task(name: str, gold: str) -> Task:
    return Task(id=name, question="?", gold=gold, kind="math")


def _choice_task(at: int, row: dict[str, Any]) -> Task:
    letter = "ABCD"[row["answer"]]
    return Task(
        id=f"mmlu/{at}", question=row["question"] or "?", gold=letter, kind="choice", choices=tuple(row["choices"])
    )


def _gsm8k(folder: Path) -> list[dict[str, Any]]:
    return [*_rows(folder / "gsm8k_test.jsonl"), *_rows(folder / "gsm8k_train.jsonl.gz")]


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.decode().splitlines()]


if __name__ == "__main__":
    main()
