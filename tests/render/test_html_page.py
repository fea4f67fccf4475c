"""The HTML page: whole in itself, readable without scripts, and safe whatever workers wrote."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.drawn_workflows import MIXED, ODD_TEXTS
from tests.render.test_pictures_of_runs import record, run_of, two_rounds, with_node

from wfdsl import to_html
from wfdsl.cli.main import main
from wfdsl.language.workflow import Step, Workflow

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></details></body></html><script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    "</title><script>alert(1)</script>",
    "javascript:alert(1) [x](javascript:alert(1)) <a href='javascript:alert(1)'>x</a>",
    "<!-- --><![CDATA[ ]]> <svg onload=alert(1)>",
    "\u202eevil\u2066 \u200f\x00\x1b[31m",
    '<meta http-equiv="refresh" content="0;url=http://example.com">',
    *ODD_TEXTS,
)
VOID = {"meta", "rect", "circle", "path"}
KNOWN = {
    *("html", "head", "meta", "title", "style", "body", "a", "header", "main", "section", "h1", "h2", "h3", "p", "dl"),
    *("dt", "dd", "div", "figure", "svg", "rect", "path", "circle", "text", "g", "details", "summary", "span", "bdi"),
    *("pre", "desc", "ul", "ol", "li", "strong", "em", "code", "h4", "h5", "h6", "blockquote", "hr", "br"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "href", "dir", "aria-label", "tabindex", "id", "d"),
    *("aria-hidden", "open", "xmlns", "role", "width", "height", "viewbox", "x", "y", "rx", "cx", "cy", "r"),
    *("text-anchor", "transform", "preserveaspectratio", "start"),
}


class Reader(HTMLParser):
    """Collects the tags of a page, and asserts that each is closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self.open[-1] if self.open else "", []).append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def hostile_run(text: str) -> Any:
    step = record(0, 0, text, error=text, response=text, model=text, status="failed")
    step.messages = ({"role": "user", "content": text},)
    return run_of(Workflow((Step(0, text),)), [step], names=(text,))


@pytest.mark.parametrize("text", HOSTILE)
def test_what_workers_wrote_is_text(text: str) -> None:
    page = read(to_html(hostile_run(text), title=text))

    assert {tag for tag, _ in page.tags} <= KNOWN
    assert {name for _, attributes in page.tags for name in attributes} <= ATTRIBUTES
    assert len(page.text["style"]) == 2
    links = [attributes["href"] for _, attributes in page.tags if "href" in attributes]
    assert all(link and link.startswith("#") for link in links)


@given(st.text(max_size=40))
def test_any_text_is_read_back_as_text(text: str) -> None:
    page = to_html(hostile_run(text or "x"), title=text)

    assert {tag for tag, _ in read(page).tags} <= KNOWN
    page.encode()
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f]", page)


def test_a_reply_keeps_its_lines_and_its_words() -> None:
    page = read(to_html(hostile_run("\n  one <b>\n\ttwo & 'three'\r\nfour")))

    assert "\n\n  one <b>\n\ttwo & 'three'\nfour" in page.text["pre"]


@pytest.mark.parametrize("value", [two_rounds(), with_node(), MIXED], ids=["rounds", "node", "workflow"])
def test_the_page_fetches_nothing_and_allows_only_its_own_styles(value: Any) -> None:
    page = to_html(value)
    found = read(page)

    (policy,) = [made["content"] for _, made in found.tags if made.get("http-equiv") == "Content-Security-Policy"]
    hashes = {base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in found.text["style"]}
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert set(re.findall(r"'sha256-([^']*)'", policy)) == hashes
    assert "unsafe" not in policy
    assert not {name for _, made in found.tags for name in made} & {"style", "src", "srcset"}
    assert set(re.findall(r"https?://[^\"]*", page)) == {"http://www.w3.org/2000/svg"}


def test_a_step_has_what_its_worker_saw_its_reply_and_its_figures() -> None:
    step = record(0, 0, "ann", response="42", started=1.0, finished=3.5, list_usd=0.25)
    step.messages = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"})
    found = read(to_html(run_of(Workflow((Step(0, "Say it."),)), [step], names=("speak",))))

    shown = {text.strip() for texts in found.text.values() for text in texts}
    assert {"speak", "ann", "Say it.", "What this worker saw", "system", "Be brief.", "Why?", "Reply", "42"} <= shown
    assert {"2.5 s", "$0.25", "done"} <= shown


def test_each_step_has_its_own_worker_also_where_a_stack_stands_for_it() -> None:
    wide = Workflow((*(Step(index % 3, f"Do {index}.") for index in range(12)), Step(0, "End.", "all")))

    found = read(to_html(wide, workers={0: "ann", 1: "bob", 2: "cy"}))

    assert found.text["bdi"] == [
        text for index in range(13) for text in (f"step {index}", ["ann", "bob", "cy"][index % 3])
    ]


def test_steps_and_rounds_have_addresses_and_every_link_leads_somewhere() -> None:
    for value in (two_rounds(), with_node(), MIXED):
        found = read(to_html(value))
        anchors = [made["id"] for _, made in found.tags if "id" in made]
        links = {str(made["href"])[1:] for tag, made in found.tags if tag == "a"}
        assert links <= set(anchors)
        assert len(set(anchors)) == len(anchors)
    assert {"round=0.1", "step=0.1.1"} <= set(re.findall(r'id="([^"]*)"', to_html(two_rounds())))


def test_failed_steps_are_open_and_others_closed() -> None:
    found = read(to_html(with_node()))

    steps = [made for tag, made in found.tags if tag == "details" and "step" in str(made.get("class"))]
    assert ["open" in made for made in steps] == ["failed" in str(made["class"]) for made in steps]
    assert any("open" in made for made in steps)


def test_the_command_writes_the_page(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    record_file = tmp_path / "record.json"
    record_file.write_text(two_rounds().to_json())
    out = tmp_path / "run.html"

    assert main(["show", "--format", "html", "--run", str(record_file)]) == 0
    printed = capfdbinary.readouterr().out.decode()
    assert main(["show", "--run", str(record_file), "-o", str(out)]) == 0

    assert out.read_text() == printed == to_html(two_rounds())
