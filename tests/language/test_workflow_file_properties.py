"""Laws of workflow files: printing and formatting lose nothing, and no text does any harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from lark import Lark, UnexpectedInput

from tests.language.wf_reading import ToyPool, workflow
from wfdsl.language.file_expansion import expand
from wfdsl.language.file_printer import format_file, print_file
from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.file_scanner import file_grammar
from wfdsl.language.file_tree import FileTree, Heading
from wfdsl.language.grammar import grammar_folder
from wfdsl.language.source import Source
from wfdsl.language.workflow import Labels, Step, Workflow

_AWKWARD = "\"'\\{}#:\n\r\t ar\x00\x85\ufeffé😀"
_TEXTS = st.text(st.one_of(st.sampled_from(_AWKWARD), st.characters(exclude_categories=["Cs"])), max_size=30)
_SUBTASKS = _TEXTS.filter(str.strip)
_NAMES = st.sampled_from(
    ["a", "by", "copies", "sees", "worker", "gpt-4.1", "étape", "x_1", "wfdsl", "tag", "conductor"]
)
_WORKERS = st.one_of(
    st.integers(0, 9),
    st.sampled_from(["planner", "tag strong", "each worker", "each tag x", "conductor", '"conductor"', "tag  x", '"']),
    _TEXTS,
)


@st.composite
def workflows(draw: Callable[..., Any]) -> Workflow:
    steps = []
    for index in range(draw(st.integers(1, 6))):
        indices = st.sets(st.integers(0, index - 1)) if index else st.just(set[int]())
        access = draw(st.one_of(st.just("all"), indices.map(lambda chosen: tuple(sorted(chosen)))))
        depth = draw(st.one_of(st.none(), st.integers(1, 1000)))
        heat = draw(st.one_of(st.none(), st.integers(0, 2), st.integers(0, 2000).map(lambda value: value / 1000)))
        most = draw(st.one_of(st.none(), st.integers(1, 1_000_000)))
        worker = draw(_WORKERS)
        own = (None, None) if worker == "conductor" else (heat, most)
        steps.append(Step(worker, draw(_SUBTASKS), access, depth, *own))
    return Workflow(tuple(steps))


@st.composite
def literals(draw: Callable[..., Any]) -> str:
    """String literals of all kinds, some with braces that are wrong."""
    prefix = draw(st.sampled_from(["", "", "r", "U"]))
    quote = draw(st.sampled_from(['"', "'", '"""', "'''"]))
    pieces = ["word ", "{{", "}}", "{n}", "\\\\", "\\n", "# no comment", "é", "{", "\\x41", "\\N{BULLET}"]
    if len(quote) == 3:
        pieces += ["\n", "\n    ", "\n      ", "\r\n", "\\\n", quote[0] + " "]
    body = "".join(draw(st.lists(st.sampled_from(pieces), max_size=8)))
    return f"{prefix}{quote}{body}{quote}"


def _row(*parts: Any) -> st.SearchStrategy[list[str]]:
    """The tokens of strategies and fixed words, one after the other."""
    rows = [st.just([part]) if isinstance(part, str) else part for part in parts]
    return st.tuples(*rows).map(lambda row: [token for tokens in row for token in tokens])


def _one(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return strategy.map(lambda token: [token])


def _several(strategy: st.SearchStrategy[list[str]], most: int, least: int = 0) -> st.SearchStrategy[list[str]]:
    return st.lists(strategy, min_size=least, max_size=most).map(lambda rows: [token for row in rows for token in row])


_WORKER = _one(st.sampled_from(["1", "-1", "{n}", "by", "sees", "gpt-4.1", '"odd name"', "r'tag'", "conductor"]))
_TAG = _one(st.sampled_from(["tag", "each", "strong", '"odd tag"', "{n}"]))
_COUNT = _one(st.sampled_from(["1", "2", "{n}", "{m}", "0"]))
_STEP_NAME = _one(_NAMES)
_SEEN = st.one_of(_STEP_NAME, _row("own", _STEP_NAME), _row("latest", _STEP_NAME))
_CLAUSES = st.one_of(
    _row("by", _WORKER),
    _row("by", _one(st.sampled_from(["0", "{n}", "and", "'x'"])), "and", _WORKER),
    _row("by", "tag", _TAG),
    _row("by", "each", "tag", _TAG),
    _row("by", "each", "worker"),
    _row(_one(st.sampled_from(["copies", "chain", "depth", "max_tokens", "temperature"])), _COUNT),
    _row("temperature", _one(st.sampled_from(["0.7", "-1.25", "{n}"]))),
    _row("sees", _one(st.sampled_from(["all", "nothing"]))),
    _row("sees", _SEEN, _several(_row(",", _SEEN), 2)),
)
_LITERALS = _several(_one(literals()), 2, least=1)
_STATEMENTS = st.one_of(
    _row("step", _STEP_NAME, _several(_CLAUSES, 4), ":", _LITERALS),
    _row("title", _LITERALS),
    _row("description", _LITERALS),
    _row("param", _STEP_NAME, "=", st.one_of(_one(st.sampled_from(["3", "-4", "0.5"])), _LITERALS)),
)
_GAPS = st.sampled_from([" ", "  ", "\n", "\n\n\n", " # c\n", "\n  # \u00e9 {\n\n", "\r\n\t", " \\\n"])


@st.composite
def files(draw: Callable[..., Any]) -> str:
    """Files that the grammar accepts, with odd gaps and comments between all tokens."""
    tokens = draw(_several(_STATEMENTS, 4))
    version = ["wfdsl", "1"] if draw(st.booleans()) else []
    return "".join(token + draw(_GAPS) for token in version + tokens)


def _comments(tree: FileTree) -> list[str]:
    return [comment.text for comment in tree.comments]


def _meaning(tree: FileTree) -> object:
    """All that a file says: its statements' texts, its parameters, and its steps as far as they can be made out."""
    steps, _ = expand(tree, params=None, pool=ToyPool())
    values = steps and (
        [worker.value for worker in steps.workers],
        [subtask.value for subtask in steps.subtasks],
        [
            entry.value if entry.value == "all" else sorted(index for index, _, _ in entry.value)
            for entry in steps.access
        ],
        steps.depths,
        steps.names,
    )
    headings = [
        (part.kind, [each if isinstance(each, str) else each.value for each in part.text.parts])
        for part in tree.statements
        if isinstance(part, Heading)
    ]
    return values, headings, tree.params


@given(workflows())
@example(Workflow((Step('"', "a\n \nb", "all", 1), Step('"\\"conductor\\""', '"""\n  {', (0,)))))
@example(Workflow((Step('tag "é"', '\\\n"'), Step("tag é", " a\nb\n", ()))))
def test_a_printed_workflow_is_read_back(steps: Workflow) -> None:
    assert workflow(print_file(steps)) == steps


@given(workflows(), _TEXTS, _TEXTS)
@example(Workflow((Step(0, "Try."),)), "a {b} }", "{n}")
def test_a_printed_file_is_tidy_and_keeps_its_headings(steps: Workflow, title: str, description: str) -> None:
    text = print_file(replace(steps, labels=Labels(title=title, description=description)))

    tree, found = read_workflow_file(Source(text))

    assert not found
    assert format_file(tree) == text
    filled, _ = expand(tree)
    assert filled is not None
    assert (filled.title, filled.description) == (title, description)


@given(files())
def test_formatting_keeps_meaning_and_comments_and_is_done_once(text: str) -> None:
    tree, _ = read_workflow_file(Source(text))

    formatted = format_file(tree)
    again, _ = read_workflow_file(Source(formatted))

    assert _meaning(again) == _meaning(tree)
    assert sorted(_comments(again)) == sorted(_comments(tree))
    assert format_file(again) == formatted


def _lark() -> Lark:
    text = (grammar_folder() / "workflow.lark").read_text("utf-8")
    return Lark(text, parser="lalr", lexer="contextual", start="file", import_paths=[str(grammar_folder())])


_PLAIN = _lark()


def _accepts(text: str) -> bool:
    try:
        _PLAIN.parse(text)
    except UnexpectedInput:
        return False
    return True


def _shape(tree: Any) -> list[tuple[str, list[str]]]:
    """The statements of Lark's own tree: the rule, and the texts of its terminals."""
    return [(str(part.data), [str(token) for token in part.scan_values(lambda _: True)]) for part in tree.children]


def _own_shape(text: str) -> list[tuple[str, list[str]]]:
    def leaves(token: Any) -> list[str]:
        return [leaf for child in token.children for leaf in leaves(child)] if token.children else [token.text]

    return [(part.type, leaves(part)) for part in file_grammar().scan(text).parts]


@given(files())
def test_the_reader_and_the_plain_grammar_make_the_same_tree(text: str) -> None:
    assert _own_shape(text) == _shape(_PLAIN.parse(text))


@st.composite
def mutated(draw: Callable[..., Any]) -> str:
    text = str(draw(files()))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 6))
        piece = draw(st.sampled_from(["", '"', "'''", "step ", ":", ",", "{", "\0", "\\", "by", " 1", "\nstep x", "“"]))
        text = text[:at] + piece + text[at + cut :]
    return text


@given(mutated())
def test_the_reader_refuses_what_the_plain_grammar_refuses(text: str) -> None:
    _, found = read_workflow_file(Source(text))

    assert any(problem.code == "syntax" for problem in found) != _accepts(text)
