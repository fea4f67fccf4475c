"""The SVG picture: well-formed whatever is in it, whole in itself, and no line runs through a box."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.render.drawn_workflows import DEAD, MIXED, ODD, ODD_OPTIONS, options, random_workflow, workflows
from tests.render.edge_reader import edges_in, seen_in

from wfdsl.language.workflow import Step, Workflow
from wfdsl.render.layout import Lane, place
from wfdsl.render.model import draw
from wfdsl.render.pictures import to_svg
from wfdsl.render.text import text_width

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return ["".join(found.itertext()) for found in ET.fromstring(svg).iter(f"{SVG}text")]


def cards(svg: str) -> list[ET.Element]:
    return [found for found in ET.fromstring(svg).iter(f"{SVG}g") if "step" in found.attrib["class"].split()]


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_a_picture_has_one_reading_only(first: int) -> None:
    workflows = [random_workflow(seed, most_steps=60 if seed % 4 == 0 else 15) for seed in range(first, first + 20)]

    assert [each for each in workflows if edges_in(to_svg(each)) != seen_in(each)] == []


@settings(max_examples=40)
@given(st.data())
def test_any_workflow_with_any_text_is_well_formed(data: st.DataObject) -> None:
    workflow = data.draw(workflows())

    chosen = data.draw(options(workflow))

    svg = to_svg(workflow, **chosen)

    assert len(cards(svg)) == len(draw(workflow, **chosen).cards)
    svg.encode()


def test_odd_text_is_shown_as_text() -> None:
    svg = to_svg(ODD, **ODD_OPTIONS)

    shown = "\n".join(texts(svg))
    assert 'Say "hi" <b>&amp;</b>' in shown
    assert "日本語" in shown
    assert "\x1b" not in svg
    assert "\u202e" not in svg
    assert not list(ET.fromstring(svg).iter(f"{SVG}script"))


def test_nothing_is_fetched_and_nothing_can_clash_on_a_page_of_pictures() -> None:
    svg = to_svg(MIXED, title="A title", names=list("abcdef"))

    root = ET.fromstring(svg)
    names = {name for found in root.iter() for name in found.attrib}
    assert not re.search(r"url\(|@import|@font-face|xlink|href", svg)
    assert svg.count("http") == 1, "only the name of the SVG namespace"
    assert "id" not in names
    assert {found.tag.removeprefix(SVG) for found in root.iter()} == {
        *("svg", "title", "style", "rect", "circle", "path", "text", "g"),
    }


def test_every_style_is_kept_to_the_picture() -> None:
    style = next(ET.fromstring(to_svg(MIXED)).iter(f"{SVG}style")).text or ""

    rules = re.sub(r"@media[^{]*\{", "", style).split("}")
    selectors = [selector.strip() for rule in rules if "{" in rule for selector in rule.split("{")[0].split(",")]
    assert len(selectors) > 20
    assert all(selector == ".wfdsl" or selector.startswith(".wfdsl ") for selector in selectors)


def test_a_picture_is_the_same_in_every_process() -> None:
    code = (
        "from tests.render.drawn_workflows import random_workflow; from wfdsl import to_svg\n"
        "print([to_svg(random_workflow(seed)) for seed in (8, 9, 11)])"
    )
    drawn = {
        subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, timeout=60)
        for seed in ("1", "2")
    }
    assert len(drawn) == 1


def test_the_answer_dead_steps_their_lines_and_conductors_stand_out() -> None:
    dead = to_svg(DEAD)
    conductor = cards(to_svg(MIXED, conductors={3}))

    assert [card.attrib["class"] for card in cards(dead)] == ["step", "step faint", "step answer"]
    cut = [card.find(f"{SVG}path") is not None for card in conductor]
    assert cut == [False, False, False, True, True, False]
    lines = [found.attrib["class"] for found in ET.fromstring(dead).iter(f"{SVG}path")]
    assert lines.count("line faint") == 1
    assert lines.count("line") == 2, "from the question and to the answer"


def test_the_whole_subtask_is_in_the_tooltip() -> None:
    long = "Read every attempt. " * 60

    svg = to_svg(Workflow((Step(0, long),)))

    tooltip = cards(svg)[0].find(f"{SVG}title")
    assert tooltip is not None
    assert tooltip.text == f"step 0 · worker 0 · {long.strip()}"
    assert any(line.endswith("…") for line in texts(svg))


def test_a_workflow_without_steps_is_drawn_and_names_that_do_not_fit_are_refused() -> None:
    assert "question" in texts(to_svg(Workflow(())))
    with pytest.raises(ValueError, match="3 steps but 1 name"):
        to_svg(DEAD, names=["one"])


@settings(max_examples=20)
@given(workflows(max_steps=30))
def test_text_stays_inside_its_card(workflow: Workflow) -> None:
    for card in cards(to_svg(workflow)):
        box = card.find(f"{SVG}rect[@class='box']")
        if box is None:
            continue
        left, right = float(box.attrib["x"]), float(box.attrib["x"]) + float(box.attrib["width"])
        bottom = float(box.attrib["y"]) + float(box.attrib["height"])
        for text in card.iter(f"{SVG}text"):
            if "text-anchor" not in text.attrib and (text.text or "")[:1] != "…":
                end = float(text.attrib["x"]) + text_width(text.text or "", 11)
                assert left < float(text.attrib["x"])
                assert end < right + 1
                assert float(text.attrib["y"]) < bottom


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(1, 30))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    return count, draw(st.lists(pairs, unique=True, max_size=40)) if count > 1 else []


@given(graphs())
def test_boxes_and_lanes_of_a_row_keep_apart(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = graph

    layout = place(edges, [200.0] * count, lane=14, gap=20, row_length=8)

    def half(spot: object) -> float:
        return 7 if isinstance(spot, Lane) else 100

    for row in layout.rows:
        assert sum(not isinstance(spot, Lane) for spot in row) <= 8
        for left, right in pairwise(row):
            room = layout.x[right] - layout.x[left] - half(left) - half(right)
            assert room > (-0.01 if isinstance(left, Lane) and isinstance(right, Lane) else 19.99)


def test_a_chain_is_straight_even_with_shortcuts() -> None:
    edges = [(i, i + 1) for i in range(8)] + [(i, 8) for i in range(7)]

    layout = place(edges, [200.0] * 9, lane=14, gap=20, row_length=8)

    assert max(layout.x[i] for i in range(9)) - min(layout.x[i] for i in range(9)) < 3


@pytest.mark.parametrize(
    ("edges", "first_row", "centred"),
    [
        ([(i, 7) for i in range(7)], (0, 1, 2, 3, 4, 5, 6), {7: (0, 6)}),
        ([(0, 2), (1, 2), (3, 5), (4, 5), (2, 6), (5, 6)], (0, 1, 3, 4), {2: (0, 1), 6: (2, 5)}),
    ],
)
def test_steps_stand_in_their_order_and_a_join_centred_below_what_it_joins(
    edges: list[tuple[int, int]], first_row: tuple[int, ...], centred: dict[int, tuple[int, int]]
) -> None:
    layout = place(edges, [168.0] * (edges[-1][1] + 1), lane=14, gap=20, row_length=8)

    assert layout.rows[0] == first_row
    for join, (left, right) in centred.items():
        assert layout.x[join] == pytest.approx((layout.x[left] + layout.x[right]) / 2)
