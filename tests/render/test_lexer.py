"""Colours of workflow files: what the grammar reads as one token has one colour, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Token

from wfdsl.testing import workflow_files
from wfdsl.testing.completion_writer import Written

TEXT = 'wfdsl 1 # plain\nparam n = 3\nstep view by {n} copies 2 temperature 0.5 sees a-b: "Use {n}, {{n}}."\n'


def coloured(text: str) -> list[tuple[object, str]]:
    return [(kind, piece) for kind, piece in get_lexer_by_name("wf").get_tokens(text) if piece.strip()]


def test_the_words_of_a_file_have_their_colours() -> None:
    found = {piece: kind for kind, piece in coloured(TEXT)}

    assert type(get_lexer_for_filename("a.wf")) is type(get_lexer_by_name("wfdsl"))
    keywords = {piece for piece, kind in found.items() if kind is Token.Keyword}
    assert keywords == {"wfdsl", "param", "step", "by", "copies", "temperature", "sees"}
    assert found["# plain"] in Token.Comment
    assert {found["view"], found["a-b"], found["n"]} == {Token.Name}
    assert found["0.5"] in Token.Literal.Number
    assert (found['"Use '], found["{n}"], found[', {{n}}."']) == (
        Token.Literal.String,
        Token.Literal.String.Interpol,
        Token.Literal.String,
    )


@pytest.mark.parametrize("wrong", ['"open', "7up", "§"])
def test_what_the_grammar_does_not_read_is_an_error(wrong: str) -> None:
    assert (Token.Error, wrong) in coloured(f"step a by 0: {wrong}")


@given(workflow_files())
def test_every_character_is_in_a_token_and_a_valid_file_has_no_error(written: Written) -> None:
    tokens = list(get_lexer_by_name("wf").get_tokens_unprocessed(written.text))

    assert "".join(piece for _, _, piece in tokens) == written.text
    assert all(written.text.startswith(piece, offset) for offset, _, piece in tokens)
    assert Token.Error not in {kind for _, kind, _ in tokens}
