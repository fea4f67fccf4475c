"""Files with the expected problems on the lines where they occur: `#! code code`. Each code is named once a line.

Dead steps are left out: they are the checker's business, and most steps of these files are dead.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.language.wf_reading import ToyPool, read
from wfdsl.language.codes import CODES
from wfdsl.language.source import Source

CORPUS = sorted((Path(__file__).parent.parent / "corpus" / "wf").glob("*.wf"))
_EXPECTED = re.compile(r"#!((?: [a-z-]+)+)$")


def pool_of(path: Path) -> ToyPool | None:
    """The pool of the one file that is about pools."""
    return ToyPool() if path.stem == "workers" else None


def _expected(text: str) -> set[tuple[int, str]]:
    return {
        (number, code)
        for number, line in enumerate(text.splitlines(), start=1)
        if (match := _EXPECTED.search(line))
        for code in match[1].split()
    }


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_file_has_the_problems_that_its_lines_name(path: Path) -> None:
    text = path.read_text("utf-8")
    source = Source(text, path.name)

    _, found = read(text, pool=pool_of(path))

    places = {(source.position(problem.span.start)[0], problem.code) for problem in found}
    assert {(line, code) for line, code in places if code != "dead-step"} == _expected(text)


@pytest.mark.parametrize("name", [code.name for code in CODES.values() if code.form == "wf" and code.wrong])
def test_the_examples_of_a_code_show_it_and_its_cure(name: str) -> None:
    row = CODES[name]

    wrong, right = read(row.wrong)[1], read(row.right)[1]

    assert {(problem.code, problem.severity) for problem in wrong} == {(name, row.kind)}
    assert not right


def test_every_code_of_workflow_files_occurs_in_the_corpus() -> None:
    named = {code for path in CORPUS for _, code in _expected(path.read_text("utf-8"))}

    assert {code.name for code in CODES.values() if code.form == "wf"} - named == {
        "settings-unlisted",
        "depth-unlisted",  # is about printing the other form
    }
