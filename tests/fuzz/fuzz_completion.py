"""The fuzz target: any text, read in both forms and both profiles, must keep the promises of the language.

    python tests/fuzz/fuzz_completion.py --seconds 60
    python tests/fuzz/fuzz_completion.py --runs 100000 --engine random

The engine `atheris` is guided by coverage (`pip install atheris`); `random` needs nothing: it writes workflows in all
styles and has accidents happen to them. Both start from the texts in `tests/fuzz/seeds`. Failing texts are kept in
`.fuzz/`; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import traceback
from collections import Counter
from contextlib import nullcontext
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

atheris: Any = importlib.import_module("atheris") if importlib.util.find_spec("atheris") else None
_GUIDED = atheris is not None and __name__ == "__main__" and "random" not in sys.argv

with atheris.instrument_imports(include=["wfdsl"]) if _GUIDED else nullcontext():
    from wfdsl.api import Checked, analyze, analyze_file_text, dumps, parse
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
_PROGRESS_S = 30.0


def check_text(text: str) -> str:
    """Read a text in every way; its verdict, for the figures.

    Raises:
        AssertionError: a promise is broken. Any other exception breaks one too.
    """
    verdict = check_completion(text)
    return verdict if verdict != "rejected" else check_file(text)


def check_completion(text: str) -> str:
    """The promises about completions."""
    strict = analyze(text, pool=7, recursion=True)
    lenient = analyze(text, pool=7, recursion=True, profile="lenient")
    _assert_sound(strict)
    _assert_sound(lenient)
    _assert_subset(strict, lenient)
    if lenient.workflow is not None:
        assert parse(dumps(lenient.workflow)) == lenient.workflow, "print and parse"
        file = analyze_file_text(dumps(lenient.workflow, form="wf"))
        assert file.workflow == lenient.workflow, "print as a file and read"
    elif not lenient.passthrough:
        _assert_parse_raises(text)
    return _verdict(strict, lenient)


def check_file(text: str) -> str:
    """The promises about workflow files."""
    checked = analyze_file_text(text)
    _assert_sound(checked)
    if checked.workflow is None:
        return "rejected"
    again = analyze_file_text(dumps(checked.workflow, form="wf"))
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


# ---- engines


class Figures:
    """What a run has seen."""

    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.failures = 0
        self.slowest_s = 0.0
        self._began = time.monotonic()
        self._told_s = 0.0

    @property
    def runs(self) -> int:
        """How many texts."""
        return sum(self.verdicts.values()) + self.failures

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._began

    def take(self, text: str) -> None:
        """Check a text; keep it if it breaks a promise."""
        began = time.perf_counter()
        try:
            self.verdicts[check_text(text)] += 1
        except Exception:  # noqa: BLE001  (any exception is a finding)
            self.failures += 1
            self._keep(text)
        self.slowest_s = max(self.slowest_s, time.perf_counter() - began)
        if self.seconds >= self._told_s + _PROGRESS_S:
            self._told_s = self.seconds
            print(f"... {self}", file=sys.stderr, flush=True)

    def _keep(self, text: str) -> None:
        KEPT.mkdir(exist_ok=True)
        data = text.encode("utf-8", "surrogatepass")
        path = KEPT / f"failure-{sha256(data).hexdigest()[:12]}.txt"
        path.write_bytes(data)
        print(f"FAILURE, kept in {path}: {text!r}\n{traceback.format_exc()}", file=sys.stderr, flush=True)

    def __str__(self) -> str:
        verdicts = ", ".join(f"{name} {times:,}" for name, times in sorted(self.verdicts.items()))
        return (
            f"{self.runs:,} texts in {self.seconds:.0f} s, {self.failures} failures ({verdicts}); "
            f"slowest {self.slowest_s * 1000:.0f} ms"
        )


def run_random(figures: Figures, *, runs: int, seconds: float, first: int) -> None:
    """Check the texts of consecutive numbers."""
    starts = seeds()
    for number in count(first):
        figures.take(random_text(number, starts))
        if _is_done(figures, runs=runs, seconds=seconds):
            print(f"random: {figures}", flush=True)
            return


def _is_done(figures: Figures, *, runs: int, seconds: float) -> bool:
    if runs and figures.runs >= runs:
        return True
    return bool(seconds and figures.seconds >= seconds) or figures.failures >= _MOST_FAILURES


def run_atheris(figures: Figures, *, runs: int, seconds: float, first: int) -> None:
    """Check texts that are made of those which led to code that no text had reached. Ends the process itself."""
    corpus = KEPT / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    starts = seeds()

    def take(data: bytes) -> None:
        figures.take(_text(data))
        if _is_done(figures, runs=runs, seconds=seconds):
            # libFuzzer would end the process without another word.
            print(f"atheris: {figures}", flush=True)
            os._exit(1 if figures.failures else 0)

    def mutate(data: bytes, most: int, number: int) -> bytes:
        chooser = Random(number)
        if chooser.random() < 0.5:
            return bytes(atheris.Mutate(data, most))
        fresh = chooser.random() < 0.1
        text = random_text(number, starts) if fresh else mutated(Choices(chooser), _text(data))
        return text.encode("utf-8", "surrogatepass")[:most]

    options = [f"-seed={first or 1}", "-max_len=4096", "-timeout=10", "-rss_limit_mb=2048", "-verbosity=0"]
    atheris.Setup(
        [sys.argv[0], str(corpus), str(SEEDS), *options],
        take,
        custom_mutator=mutate,
        internal_libfuzzer=True,
    )
    atheris.Fuzz()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def main() -> int:
    """Run the engine that was asked for."""
    parser = argparse.ArgumentParser(description="Fuzz the readers of both forms.")
    parser.add_argument("--seconds", type=float, default=0, help="how long; 0: no limit")
    parser.add_argument("--runs", type=int, default=0, help="how many texts; 0: no limit")
    parser.add_argument("--engine", choices=("atheris", "random"), help="default: atheris where it is installed")
    parser.add_argument("--first", type=int, default=0, help="the first number (random), or the seed (atheris)")
    asked = parser.parse_args()
    if not asked.seconds and not asked.runs:
        parser.error("say how long: --seconds N or --runs N")
    if asked.engine == "atheris" and not atheris:
        parser.error("atheris is not installed: pip install atheris, or take --engine random")
    if not asked.engine and not atheris:
        print("atheris is not installed, so texts are random: pip install atheris for guidance by coverage")
    engine = asked.engine or ("atheris" if atheris else "random")
    return _report(engine, asked)


def _report(engine: str, asked: argparse.Namespace) -> int:
    figures = Figures()
    settings: dict[str, Any] = {"runs": asked.runs, "seconds": asked.seconds, "first": asked.first}
    (run_atheris if engine == "atheris" else run_random)(figures, **settings)
    return 1 if figures.failures else 0


if __name__ == "__main__":
    sys.exit(main())
