"""`conductor.lark` is the language: the scanner reads what plain Lark reads with it, and a changed file changes that.

Plain Lark is the oracle: its LALR parser and contextual lexer, made from the grammar file with nothing added. It has no
way to go on after an error, so the two are compared up to the first one:

- If Lark accepts a text, the scanner finds the same lists, tags and tokens at the same places.
- If Lark stops at an offset, the scanner has a bad list whose error is there, with two exceptions. Where the text ends
  inside a list, the error is the end of the text, while Lark may stop at the string that is cut. And a round bracket
  that opens no tuple opens no list, so that the scanner has nothing there.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, target
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark, Token, Tree, UnexpectedInput
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

from wfdsl.language.completion import read_completion
from wfdsl.language.completion_scanner import BadList, Scanner, scanner
from wfdsl.language.grammar import Token as OurToken
from wfdsl.language.grammar import grammar_folder
from wfdsl.testing import Written, completions, near_misses, repairable_completions
from wfdsl.testing.generators import TOKENS

LABELS = {"MODEL_ID", "SUBTASKS", "ACCESS_LIST", "X_MODEL_ID", "X_SUBTASKS", "X_ACCESS_LIST"}
PLAIN_LISTS = 'model_id = [0, 1]\nsubtasks = ["Plan it.", "Do it."]\naccess_list = [[], [0]]'
SOUP = st.lists(st.one_of(st.sampled_from(TOKENS), st.text(max_size=2)), max_size=30).map("".join)
TEXTS = st.one_of(
    near_misses(),
    st.one_of(completions(), repairable_completions()).map(lambda written: written.text),
    SOUP,
)


@cache
def plain_lark() -> Lark:
    """The grammar file under Lark's own lexer and parser."""
    folder = grammar_folder()
    grammar = (folder / "conductor.lark").read_text("utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start="completion",
        import_paths=[str(folder)],
        maybe_placeholders=False,
    )


def lark_parts(tree: Tree[Token]) -> list[Any]:
    """What a completion holds beside prose, as nested tuples."""
    shapes = [_lark_shape(child) for child in tree.children]
    return [shape for shape in shapes if shape[0] not in {"PROSE", "LANDMARK"}]


def _lark_shape(node: Tree[Token] | Token) -> Any:
    """Of brackets and commas the scanner keeps one offset: where an opening one starts, where another one ends."""
    if not isinstance(node, Token):
        return str(node.data), [_lark_shape(child) for child in node.children]
    if node.type in {"LSQB", "LPAR"}:
        return node.start_pos
    return (
        node.end_pos if node.type in {"COMMA", "_END", "RPAR"} else (node.type, str(node), node.start_pos, node.end_pos)
    )


def _our_shape(token: OurToken | int) -> Any:
    if isinstance(token, int):
        return token
    if token.type.isupper():
        return token.type, token.text, token.start, token.end
    return token.type, [_our_shape(child) for child in token.children]


def assert_same_reading(text: str) -> bool:
    """Compare the two; whether Lark accepts the text."""
    parts = scanner().scan(text).parts
    bad = [part for part in parts if isinstance(part, BadList)]
    try:
        tree = plain_lark().parse(text)
    except UnexpectedInput as error:
        _assert_same_error(text, bad, error)
        return False
    assert not bad
    assert [_our_shape(part) for part in parts] == lark_parts(tree)
    return True


def _assert_same_error(text: str, bad: list[BadList], error: UnexpectedInput) -> None:
    at = _offset(text, error)
    if _opened_by_round_bracket(text, error):
        assert all(found.label.start != _last_label(error).start_pos or found.cut for found in bad)
        return
    assert bad
    if bad[0].cut:
        assert bad[0].error == len(text)
        assert bad[0].opened <= at <= len(text)
    else:
        assert bad[0].error == at


def _offset(text: str, error: UnexpectedInput) -> int:
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        return len(text)
    assert isinstance(error, UnexpectedCharacters | UnexpectedToken)
    assert error.pos_in_stream is not None
    return error.pos_in_stream


def _last_label(error: UnexpectedInput) -> Token:
    stack = error.interactive_parser.parser_state.value_stack
    return next(value for value in reversed(stack) if isinstance(value, Token) and value.type in LABELS)


def _opened_by_round_bracket(text: str, error: UnexpectedInput) -> bool:
    label = _last_label(error)
    assert label.end_pos is not None
    return text[label.end_pos] == "("


@given(TEXTS)
def test_the_scanner_reads_a_text_as_plain_lark_does(text: str) -> None:
    accepted = assert_same_reading(text)

    target(float(accepted))


def _from_the_grammar() -> st.SearchStrategy[str]:
    """Texts that Lark's grammar generates.

    Terminals with look-around are drawn from samples, because the text of a single terminal cannot satisfy them;
    whether the whole text fits is for Lark to say.
    """
    space = st.sampled_from(["", " ", "\n", " # [\n"])
    labels = {
        "MODEL_ID": ["model_id = ", "model_id: list[int] =", "model_id**: `"],
        "SUBTASKS": ["subtasks=", 'subtasks":', "subtasks："],
        "ACCESS_LIST": ["access_list = ", "access_list :\n", "access_list: List[List[int]] = "],
        "X_MODEL_ID": ["Model ID: ", "model_ids = ", "model\\_id (one each) = ", 'model_id\\": ', "model_id:\n```py\n"],
        "X_SUBTASKS": ["SUBTASKS = ", "subtasks\u00a0="],
        "X_ACCESS_LIST": ["Access Lists: ", "access_list (x) =", "access_list\n```\n"],
    }
    explicit = {name: st.sampled_from(samples) for name, samples in labels.items()}
    explicit |= {
        "_END": st.sampled_from(["]", "］"]),
        "LSQB": st.sampled_from(["[", "［"]),
        "COMMA": st.sampled_from([",", "，", "、"]),
        "X_WIDE_INT": st.sampled_from(["０", "１２"]),
        "X_QUOTE_MARK": st.sampled_from(["> ", ">>"]),
        "INT": st.sampled_from(["0", "-1", "7", "12"]),
        "STRING": st.sampled_from(['"a"', "'it'", '"""x\n"y"""', "r'\\d'", '""', "U'\\x41'", "'''it's'''"]),
        "X_BROKEN_STRING": st.sampled_from(['"a\nb"', "'\r\n'"]),
        "X_ESCAPED_STRING": st.sampled_from(['\\"a\\"', '\\"\\\\\\"\\\\n\\"']),
        "X_CURLY_STRING": st.sampled_from(["“a”", "‘it’s’"]),
        "X_FLOAT": st.sampled_from(["1.0", "-2.", "0.000"]),
        "X_NUMBER": st.sampled_from(["1.5", "007", "1e3", ".5", "1_0", "0x1F", "-1.2.3"]),
        "X_NONE": st.sampled_from(["None", "null"]),
        "X_CONSTANT": st.sampled_from(["True", "false"]),
        "X_NO_BREAK_SPACE": st.just("\u00a0"),
        "X_ESCAPED_SPACE": st.sampled_from(["\\n", "\\n  "]),
        "X_SLASH_COMMENT": st.sampled_from(["// x\n", "//[\n", "/* ] */"]),
        "SPACE": st.sampled_from([" ", "\n", "\\\n"]),
        "COMMENT": st.sampled_from(["# c\n", "#[\n"]),
        "PROSE": st.sampled_from(["\n", "so ", ". ", "[", '"', "(", "#", "é"]),
        "LANDMARK": st.sampled_from(["model", "Access", "<think>"]),
        "THINK": st.sampled_from(["<think>", "<Reasoning >", "[THINK]", "◁think▷", "<|channel>thought"]),
        "END_THINK": st.sampled_from(["</think>", "</seed:think>", "[/THINK]", "<channel|>"]),
        "ASIDE": st.sampled_from(["<|channel|>analysis<|message|>", "<details><summary>My thoughts</summary>"]),
        "END_ASIDE": st.sampled_from(["<|end|>", "</details>"]),
        "CHANGE": st.sampled_from(["model_id.append(", "subtasks += ", "access_list[0] ="]),
        "BAD_LIST": st.just("model_id = [x\n"),
    }
    return st.tuples(from_lark(plain_lark(), start="completion", explicit=explicit), space).map("".join)


@given(_from_the_grammar())
def test_the_scanner_reads_what_the_grammar_generates_as_plain_lark_does(text: str) -> None:
    assert_same_reading(text)


@given(completions(surroundings=False))
def test_plain_lark_accepts_every_list_that_the_strict_profile_accepts(written: Written) -> None:
    assert assert_same_reading(written.text)


@pytest.mark.parametrize(
    "text",
    [
        "### model_id = [0]",
        "# <think> # </think> model_id = [1]",
        "model_id = (0) and model_id = (0, 1)",
        "xmodel_id = [0] model_id_ = [1] model_id = [2]",
        "model_id == [0] model_id = = [0]",
        'model_id": [0], "subtasks": ["\\/"]',
        "model_id = [0] * 2",
        "model_id = [0]\n* 2",
        "model_id = [[[0]]]",
        "subtasks = ['a' 'b' (\"c\")]",
        "subtasks = [''' ]",
        'access_list = ["all',
        "model_id: [int] = [0]",
        "<thinking model_id = [0] [THINK] <b:think> <:think> < think> [think] <|end|>",
        "model_id = [0] <details>\n<summary>Chain of thought</summary> </details> <details> <|channel|>final",
        "<model_id>[0]</model_id> model_id>[1] </subtasks>[2] <subtasks>\n['a']",
        "model_id\n```python\n[0]\n``` subtasks:```\n['a'] access_list = ```python\n[[]]\n```",
        r'{"x": "{\"model_id\": [0], \"subtasks\": [\n  \"a \\\"b\\\" c\"\n], \"access_list\": [\n  [],\n  [0]]}',
        r"subtasks = [\"a\n\\",
        r"subtasks = [\"a" + 3 * "\\",
        "subtasks = [" + 2 * "\\",
        "subtasks = [\\",
        "model_id = [0, // x\n 1 // y ]\n]",
        "model_id = [4 // 2]",
        "model_id = [0] // [",
        "model_id = [0] model_id += [1] model_id[0] = 2 model_id[0] == 3",
        "del model_id[0] wf['subtasks'].pop( (access_list) += model_id = sorted(a, model_id) model_id = f(x)",
        "model_id = [０, ０１] > model_id = [0,\n> 1] model_id ＝ ［0、1］ model_id = [1 /* , */, /* ] ",
        "model_id</b> = [0] <arg_key>model_id</arg_key><arg_value>[0] name='model_id' x>[1] \u202asubtasks\u202c = []",
        "model_id = [0] if a else [1] model_id = [0] if b",
        "subtasks[0][1].extend([]) subtasks = subtasks + [2] my_subtasks.append(1)",
        "model_id: list[list[list[list[int]]]] = [0]",
    ],
)
def test_the_scanner_reads_an_edge_of_the_grammar_as_plain_lark_does(text: str) -> None:
    assert_same_reading(text)


def changed_grammar(folder: Path, file: str, old: str, new: str) -> Scanner:
    """The scanner of a copy of the grammar in which one rule reads differently."""
    shutil.copytree(grammar_folder(), folder, dirs_exist_ok=True)
    path = folder / file
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")
    return Scanner(folder)


def codes(text: str, scan_with: Scanner | None = None) -> list[str]:
    reading = read_completion(text, "strict", scan_with)
    return [found.code for found in reading.diagnostics]


@pytest.mark.parametrize(
    ("file", "old", "new", "text", "before", "after"),
    [
        pytest.param(
            "conductor.lark",
            "!_items{item}: _more{item} COMMA?",
            "!_items{item}: _more{item}",
            PLAIN_LISTS.replace("[0, 1]", "[0, 1,]"),
            [],
            ["list-continued"],
            id="no trailing commas",
        ),
        pytest.param(
            "conductor.lark",
            "!?access: LSQB",
            '!?access: "{" [_items{step}] "}" -> access\n      | LSQB',
            PLAIN_LISTS.replace("[0]]", "{0}]"),
            ["not-a-literal"],
            [],
            id="other brackets around an access entry",
        ),
        pytest.param(
            "conductor.lark",
            "END_THINK.2: /<\\/(?:[a-z]{1,20}[:_])?(?:think(?:ing)?",
            "END_THINK.2: /<\\/(?:[a-z]{1,20}[:_])?(?:ponder",
            PLAIN_LISTS + "\n</think>",
            ["list-missing"],
            [],
            id="another tag ends the reasoning",
        ),
    ],
)
def test_changing_a_rule_in_the_file_changes_what_is_accepted(
    tmp_path: Path, file: str, old: str, new: str, text: str, before: list[str], after: list[str]
) -> None:
    changed = changed_grammar(tmp_path, file, old, new)

    assert codes(text) == before
    assert codes(text, changed) == after
