"""The fuzz target: any text, read in both forms and both profiles, must keep the promises of the language.

    python -m tests.fuzz.fuzz_completion --seconds 60

It writes workflows in all styles, and has accidents happen to them and to the texts in `tests/fuzz/seeds`. Failing
texts are kept in `.fuzz/`; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random

from wfdsl.api import Checked, analyze, dumps, parse
from wfdsl.language.codes import CODES
from wfdsl.language.diagnostics import WorkflowError, as_json, as_text
from wfdsl.testing.completion_writer import ALWAYS_POSSIBLE, SOMETIMES_POSSIBLE, write_completion
from wfdsl.testing.file_writer import write_file
from wfdsl.testing.generators import TOKENS, Choices, mutated, random_workflow

SEEDS = Path(__file__).parent / "seeds"
KEPT = Path(".fuzz")
REPAIRS = {name for name, code in CODES.items() if code.kind == "repair"}
_RENDERED = 5  # diagnostics of a text that are rendered; more of them find nothing new
_MOST_FAILURES = 10


def check_text(text: str) -> str:
    """Read a text in every way; its verdict, for the figures.

    Raises:
        AssertionError: a promise is broken. Any other exception breaks one too.
    """
    verdict = check_completion(text)
    return verdict if verdict != "rejected" else check_file(text)


def check_completion(text: str) -> str:
    """The promises about completions."""
    _assert_sound(analyze(text))
    strict = analyze(text, pool=7, recursion=True)
    lenient = analyze(text, pool=7, recursion=True, profile="lenient")
    _assert_sound(strict)
    _assert_sound(lenient)
    _assert_subset(strict, lenient)
    if lenient.workflow is not None:
        assert parse(dumps(lenient.workflow)) == lenient.workflow, "print and parse"
        file = analyze(dumps(lenient.workflow, form="wf"), form="wf")
        assert file.workflow == lenient.workflow, "print as a file and read"
    elif not lenient.passthrough:
        _assert_parse_raises(text)
    return _verdict(strict, lenient)


def check_file(text: str) -> str:
    """The promises about workflow files."""
    checked = analyze(text, form="wf")
    _assert_sound(checked)
    if checked.workflow is None:
        return "rejected"
    again = analyze(dumps(checked.workflow, form="wf"), form="wf")
    assert again.workflow == checked.workflow, "print as a file and read"
    return "file"


def _assert_sound(checked: Checked) -> None:
    size = len(checked.source.text)
    for found in checked.diagnostics:
        assert found.code in CODES, f"unknown code {found.code}"
        assert 0 <= found.span.start <= found.span.end <= size, f"span {found.span} outside the text"
    for found in checked.diagnostics[-_RENDERED:]:
        as_text(found, checked.source)
        as_json(found, checked.source)
    assert checked.ok or checked.workflow is None, "a workflow despite errors"
    starts = [found.span.start for found in checked.diagnostics]
    assert starts == sorted(starts), "not in the order of the text"


def _assert_subset(strict: Checked, lenient: Checked) -> None:
    assert [found.code for found in strict.diagnostics if found.code not in REPAIRS] == [
        found.code for found in lenient.diagnostics if found.code not in REPAIRS
    ], "the profiles see different problems"
    if strict.ok:
        assert strict.workflow == lenient.workflow, "strict is no subset of lenient"
        assert strict.diagnostics == lenient.diagnostics, "strict overlooks a repair"
    elif lenient.ok:
        assert {found.code for found in strict.diagnostics if found.is_error} <= REPAIRS, "strict rejects for no repair"


def _assert_parse_raises(text: str) -> None:
    try:
        parse(text, pool=7, profile="lenient")
    except WorkflowError:
        return
    raise AssertionError("parse accepts what analyze rejects")


def _verdict(strict: Checked, lenient: Checked) -> str:
    if lenient.passthrough:
        return "passthrough"
    if lenient.workflow is None:
        return "rejected"
    return "strict" if strict.ok else "repaired"


# ---- texts


def seeds() -> list[str]:
    """The texts to start from."""
    return [path.read_bytes().decode("utf-8", "surrogateescape") for path in sorted(SEEDS.iterdir())]


def random_text(number: int, starts: list[str]) -> str:
    """The text of a number: a workflow in some style, a seed or a mixture of tokens, most often after accidents."""
    chooser = Random(number)
    repairs = chooser.sample((*ALWAYS_POSSIBLE, *SOMETIMES_POSSIBLE), chooser.choice((0, 0, 1, 2, 4)))
    choices = Choices(chooser, repairs)
    kind = chooser.choice(("completion",) * 5 + ("file",) * 2 + ("seed", "tokens"))
    if kind == "tokens":
        return "".join(chooser.choices(TOKENS, k=chooser.randint(0, 60)))
    if kind == "seed":
        text = chooser.choice(starts)
    else:
        written = write_completion if kind == "completion" else write_file
        text = written(choices, random_workflow(choices)).text
    return mutated(choices, text) if chooser.random() < 0.9 else text


# ---- runs


def keeps_promises(text: str, verdicts: Counter[str]) -> bool:
    """Check a text and count its verdict; one that breaks a promise is kept, and said on standard error."""
    try:
        verdicts[check_text(text)] += 1
    except Exception:  # noqa: BLE001  (any exception is a finding)
        KEPT.mkdir(exist_ok=True)
        data = text.encode("utf-8", "surrogatepass")
        path = KEPT / f"failure-{sha256(data).hexdigest()[:12]}.txt"
        path.write_bytes(data)
        print(f"FAILURE, kept in {path}: {text!r}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        return False
    return True


def main() -> int:
    """Check the texts of consecutive numbers."""
    parser = argparse.ArgumentParser(description="Fuzz the readers of both forms.")
    parser.add_argument("--seconds", type=float, default=0, help="how long; 0: no limit")
    parser.add_argument("--runs", type=int, default=0, help="how many texts; 0: no limit")
    parser.add_argument("--first", type=int, default=0, help="the first number")
    asked = parser.parse_args()
    if not asked.seconds and not asked.runs:
        parser.error("say how long: --seconds N or --runs N")
    verdicts: Counter[str] = Counter()
    starts, began, failures, done = seeds(), time.monotonic(), 0, 0
    for number in count(asked.first):
        failures += not keeps_promises(random_text(number, starts), verdicts)
        done += 1
        over_time = asked.seconds and time.monotonic() - began >= asked.seconds
        if done == asked.runs or over_time or failures >= _MOST_FAILURES:
            break
    seen = ", ".join(f"{name} {times:,}" for name, times in sorted(verdicts.items()))
    print(f"{done:,} texts in {time.monotonic() - began:.0f} s, {failures} failures ({seen})", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
