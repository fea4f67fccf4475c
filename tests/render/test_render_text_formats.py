"""Mermaid: what it says, and that no text in it can break out of its place."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.render.drawn_workflows import DEAD, options, workflows

from wfdsl.language.workflow import Step, Workflow
from wfdsl.render.model import draw
from wfdsl.render.pictures import to_mermaid

# What a label may hold: words and plain punctuation, codes, our own three tags, and anything beyond ASCII.
LABEL = r'"(?:[\w .,?!\']|[^\x00-\x7fﬂ¶]|#\d+;|<br/>)*"'
NODE = re.compile(rf"  s\d+(?:\[{LABEL}\]|\[\[{LABEL}\]\]|\{{\{{{LABEL}\}}\}})(?::::[a-z]+)?")
OTHER = re.compile(
    r'flowchart TD|  question\(\["question"\]\)|  (?:s\d+|question) (?:-->|-\.->) s\d+|  class s\d+ [a-z]+'
    r"|  classDef [a-z]+ [\w#:,.\- ]+"
)


def mermaid_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[3:-1] if lines[0] == "---" else lines[:-1]


def test_mermaid_of_a_small_workflow() -> None:
    workflow = Workflow((Step(0, "Plan it."), Step(1, "Why dead?"), Step(5, "Answer.", (0,), 1)))

    found = to_mermaid(workflow, title="T", names=list("abc"))

    assert found == (
        '---\ntitle: "T"\n---\n'
        "flowchart TD\n"
        '  question(["question"])\n'
        '  s0["a · worker 0<br/>Plan it."]\n'
        '  s1["b · worker 1<br/>Why dead?<br/>dead"]:::dead\n'
        '  s2{{"c · worker 5<br/>Answer.<br/>answer · conductor, depth 1"}}:::answer\n'
        "  question --> s0\n"
        "  question -.-> s1\n"
        "  s0 --> s2\n"
        "  classDef answer stroke:#2f6fde,stroke-width:2px\n"
        "  classDef dead stroke-dasharray:5 4,opacity:0.5\n"
    )


@settings(max_examples=40)
@given(st.data())
def test_no_text_breaks_out_of_a_mermaid_label(data: st.DataObject) -> None:
    workflow = data.draw(workflows())

    chosen = data.draw(options(workflow))

    lines = mermaid_lines(to_mermaid(workflow, **chosen))

    assert all(NODE.fullmatch(line) or OTHER.fullmatch(line) for line in lines)
    assert sum(bool(NODE.fullmatch(line)) for line in lines) == len(draw(workflow, **chosen).cards)


def test_mermaid_signs_become_codes() -> None:
    found = to_mermaid(Workflow((Step(0, '1. "a" <b> `c` #d; %%e [f] _g_ h\\n'),)))

    shown = found.replace("<br/>", " ")
    assert "1#46; #34;a#34; #60;b#62; #96;c#96; #35;d#59; #37;#37;e #91;f#93; #95;g#95; h#92;\u2060n" in shown


@pytest.mark.parametrize("text", ["direction LR", "a fa:fa-car", "$$x^2$$", "fab:fa-x"])
def test_what_mermaid_acts_on_even_as_codes_is_parted(text: str) -> None:
    found = to_mermaid(Workflow((Step(0, text),)))
    decoded = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), found)

    assert text not in decoded
    assert text in decoded.replace("\u2060", "")


def test_a_mermaid_title_is_one_yaml_string() -> None:
    found = to_mermaid(DEAD, title='a "b" \\ <c> & d\n---\ne')

    assert found.startswith('---\ntitle: "a \\"b\\" \\\\ ＜c＞ ＆ d --- e"\n---\n')


def test_all_is_said_in_words_where_its_lines_are_left_out() -> None:
    found = to_mermaid(Workflow((Step(0, "A."), Step(1, "B.", "all"), Step(2, "C.", "all"))))

    assert found.count("sees all") == 2
    assert len(re.findall(r"s\d+ --> s\d+", found)) == 2
