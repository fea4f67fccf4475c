"""Replies as HTML: what Markdown and formulas become, and that nothing else does."""

from __future__ import annotations

import re

import pytest

from wfdsl.render.markup import markup


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**a** and `b`", "<strong>a</strong> and <code>b</code>"),
        ("# A", "<h4>A</h4>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("|a|b|\n|-|-:|\n|1|2|", '<td class="right">2</td>'),
        ("```python\nreturn 1\n```", '<span class="k">return</span>'),
        ("```nolanguage\n<b>\n```", "&lt;b&gt;"),
        ("[a](https://b.example)", '<span>a <span class="address">(https://b.example)</span></span>'),
        ("![a](https://b.example/c.png)", 'a <span class="address">(https://b.example/c.png)</span>'),
        ("it costs $5 and $6 **now**", "it costs $5 and $6 <strong>now</strong>"),
    ],
)
def test_markdown_is_shown_as_what_it_means(text: str, html: str) -> None:
    assert html in markup(text)


@pytest.mark.parametrize(
    "text", ["so $x^2$", "so $$x^2$$", r"so \(x^2\)", r"so \[x^2\]", "$$\nx^2\n$$", "\\[\nx^2\n\\]"]
)
def test_formulas_are_mathml(text: str) -> None:
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in markup(text)


@pytest.mark.parametrize(
    "formula",
    [
        r"\text{<script>x</script>}",
        r"\href{javascript:x}{y}",
        r"\left( x",
        "{" * 900,
        r"\style{color:red}{x}",
        r"\frac",
    ],
)
def test_a_formula_that_is_more_than_one_is_shown_as_written(formula: str) -> None:
    found = markup(f"so ${formula}$ **end**")

    assert not re.search(r"<(script|a|merror)\b|href=|style=", found)
    assert "<strong>end</strong>" in found


@pytest.mark.parametrize("text", ["[" * 10**5, "- $$\n" * 20_000, "> " * 50_000])
def test_a_long_text_is_shown_as_written_which_is_below_any_other_that_differs(text: str) -> None:
    assert markup(text).startswith("<pre")
    assert "<details" not in markup("a <b> c")
    assert "**a**" in markup("**a**")
