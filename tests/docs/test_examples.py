"""Every fenced example of README and docs does what the page says."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import shutil
import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from wfdsl.api import Form, analyze
from wfdsl.cli.main import COMMANDS, _parser
from wfdsl.experiment import read_experiment
from wfdsl.settings import TABLES

from .console_examples import Command, Console, commands_of, matches, planned
from .generated import page_text
from .pages import ROOT, Example, examples_of, pages, read_page
from .python_examples import PythonSession, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KNOWN = {"", "completion", "console", "json", "lark", "markdown", "python", "text", "toml", "wf"}
LOCAL = "local"


def _has_local(page: str) -> bool:
    return any(example.marks.get("run") == LOCAL for example in examples_of(page, read_page(page)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder like a checkout, as far as examples see it, with a journal of its own."""
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs/examples", tmp_path / "docs/examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    profile = settings.get_current_profile_name()
    settings.load_profile("quick")  # for examples that draw texts
    yield tmp_path
    settings.load_profile(profile)


@pytest.mark.parametrize("page", pages())
def test_examples_do_what_their_page_says(page: str, folder: Path) -> None:
    _Page(folder, with_local=False).go_through(examples_of(page, page_text(page)))


@pytest.mark.local
@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in pages() if _has_local(page)])
def test_examples_on_the_local_model_do_what_their_page_says(page: str, folder: Path) -> None:
    _Page(folder, with_local=True).go_through(examples_of(page, page_text(page)))


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("```python\n1 + 1  # -> 3\n```\n", "gives\n  2\nand the page shows\n  3"),
        ("```console\n$ wfdsl check --explain no-steps\nno-steps: all is well\n...\n```\n", "the file has no step"),
        ("<!-- not run: x -->\n```console\n$ wfdsl run a.wf -q Why? --question_file q.txt\n```\n", "unrecognized"),
    ],
    ids=["value", "output", "option of a command that is not run"],
)
def test_an_example_that_is_not_true_is_found(folder: Path, page: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        _Page(folder, with_local=False).go_through(examples_of("page.md", page))


def test_three_dots_stand_for_any_lines_and_nothing_else_does() -> None:
    assert matches("a\nb\nc\nd\n", "a\n...\nd\n")
    assert not matches("a\nb\nc\nd\n", "a\n...\nc\n")
    assert not matches("a\nb\nd\n", "a\nd\n")


def test_times_are_not_compared_and_words_are() -> None:
    assert matches("plan  done in 1 min 02 s, 1,204 tokens\n", "plan  done in 340 ms, 7 tokens\n")
    assert not matches("plan  done in 1.2 s\n", "plan  failed in 1.2 s\n")


class _Page:
    """One page being gone through."""

    def __init__(self, folder: Path, *, with_local: bool) -> None:
        self._folder = folder
        self._with_local = with_local
        self._console = Console(folder)
        self._python = PythonSession()
        self._printed: tuple[Example, str] | None = None
        """A Python example and what it printed, as long as no `text` block has shown it."""

    def go_through(self, examples: list[Example]) -> None:
        with contextlib.closing(self._python):
            for example in examples:
                self._take(example)
            self._nothing_hidden()

    def _take(self, example: Example) -> None:
        assert example.language in KNOWN, f"{example.place}: no test knows how to run `{example.language}`"
        if example.language == "text" and example.adjacent and self._printed is not None:
            self._compare_printed(example)
            return
        self._nothing_hidden()
        if "file" in example.marks:
            path = self._folder / example.marks["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(example.text, "utf-8")
        runs = "not run" not in example.marks and (self._with_local or example.marks.get("run") != LOCAL)
        getattr(self, f"_take_{example.language or 'text'}")(example, runs=runs)

    def _take_python(self, example: Example, *, runs: bool) -> None:
        if runs:
            printed = self._python.run(example.text, example.place)
            self._printed = (example, printed) if printed else None
        else:
            parsed(example.text, example.place)

    def _take_console(self, example: Example, *, runs: bool) -> None:
        for command in commands_of(example.text):
            if runs and not _is_only_read(command, example):
                actual = self._console.run(command.text)
                assert matches(actual, command.output), (
                    f"{example.place}: `{command.text}` prints\n{actual}\nand the page shows\n{command.output}"
                )
                unseen = self._console.code and command.output.strip() in ("", "...")
                assert not unseen, f"{example.place}: `{command.text}` ends with {self._console.code}\n{actual}"
            else:
                _assert_understood(command, example.place)

    def _take_wf(self, example: Example, *, runs: bool) -> None:
        _assert_verdict(example, "wf")

    def _take_completion(self, example: Example, *, runs: bool) -> None:
        _assert_verdict(example, "completion")

    def _take_toml(self, example: Example, *, runs: bool) -> None:
        if set(tomllib.loads(example.text)) & set(TABLES):
            path = self._folder / example.marks.get("file", "example.toml")
            path.write_text(example.text, "utf-8")
            read_experiment(path)

    def _take_json(self, example: Example, *, runs: bool) -> None:
        json.loads(example.text)

    def _take_text(self, example: Example, *, runs: bool) -> None:
        if not example.language:  # shown, or written to a file; commands are read
            for line in example.text.splitlines():
                if line.startswith(("wfdsl ", "pip ")):
                    _assert_understood(Command(line, ""), example.place)

    def _take_lark(self, example: Example, *, runs: bool) -> None:
        grammars = "\n".join(path.read_text("utf-8") for path in (ROOT / "grammars").glob("*.lark"))
        for line in example.text.splitlines():
            assert line.strip() in grammars, f"{example.place}: no grammar file has the line\n{line}"

    def _take_markdown(self, example: Example, *, runs: bool) -> None:
        pass  # shows how a page is written

    def _compare_printed(self, shown: Example) -> None:
        assert self._printed is not None
        example, printed = self._printed
        self._printed = None
        assert matches(printed, shown.text), f"{example.place} prints\n{printed}\nand {shown.place} shows\n{shown.text}"

    def _nothing_hidden(self) -> None:
        assert self._printed is None, (
            f"{self._printed[0].place} prints, and the page does not show it: {self._printed[1]}"
        )


def _assert_verdict(example: Example, form: Form) -> None:
    codes = {found.code for found in analyze(example.text, name=example.place, form=form).diagnostics if found.is_error}
    expected = {code.strip() for code in example.marks.get("error", "").split(",") if code.strip()}
    assert codes == expected, f"{example.place}: the errors are {codes or 'none'}"


def _is_only_read(command: Command, example: Example) -> bool:
    """Whether a command installs something or takes its time."""
    return command.text.startswith("pip ") or (command.text.startswith("make ") and example.marks.get("run") != LOCAL)


def _assert_understood(command: Command, place: str) -> None:
    """Read a command that is not run: its options, extras and targets exist."""
    words = shlex.split(command.text.replace("&&", " && "), comments=True)
    for part in " ".join(shlex.quote(word) if word != "&&" else word for word in words).split(" && "):
        first, *arguments = shlex.split(part)
        if first == "wfdsl":
            _assert_options(arguments, place)
        if first == "make":
            assert planned(arguments), f"{place}: make does nothing for {part}"
        for word in arguments:
            assert not word.endswith(".py") or (ROOT / word).exists(), f"{place}: there is no file {word}"
            if word.startswith(".["):
                extras = set(word.removeprefix(".[").split("]")[0].split(","))
                assert extras <= _extras(), f"{place}: there is no extra {extras - _extras()}"


def _assert_options(arguments: list[str], place: str) -> None:
    assert arguments[0] in COMMANDS, f"{place}: there is no command {arguments[0]}"
    parser = _parser(arguments)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parser.parse_args(arguments)
    except SystemExit:
        raise AssertionError(f"{place}: {said.getvalue()}") from None


def _extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return set(project["project"]["optional-dependencies"])
