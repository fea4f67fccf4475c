"""Whatever models and people write, a page holds only elements and attributes of its own templates."""

from __future__ import annotations

import asyncio
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import wfdsl
from wfdsl.viewer.page import asset

TEXTS = [
    "<script>window.hacked=1</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=window.hacked=1>",
    "<img src=//evil.example/pixel.png>",
    "<svg onload=window.hacked=1>",
    "<svg><script>window.hacked=1</script></svg>",
    "<svg><animate onbegin=window.hacked=1 attributeName=x dur=1s>",
    '"><script>window.hacked=1</script>',
    "'><script>window.hacked=1</script>",
    "</pre><script>window.hacked=1</script>",
    "</title><script>window.hacked=1</script>",
    "</style><script>window.hacked=1</script>",
    "</textarea><script>window.hacked=1</script>",
    "--><script>window.hacked=1</script>",
    "]]><script>window.hacked=1</script>",
    '" onmouseover="window.hacked=1" autofocus onfocus="window.hacked=1" x="',
    "' autofocus onfocus='window.hacked=1' x='",
    "<iframe src=javascript:window.hacked=1></iframe>",
    "<iframe srcdoc='<script>top.hacked=1</script>'></iframe>",
    "<a href=javascript:window.hacked=1>click</a>",
    "javascript:window.hacked=1",
    "<body onload=window.hacked=1>",
    "<details open ontoggle=window.hacked=1>",
    "<video><source onerror=window.hacked=1></video>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.hacked=1>",
    "<link rel=stylesheet href=//evil.example/x.css><style>@import '//evil.example/y.css'</style>",
    "<base href=//evil.example/><form action=//evil.example/><button>send",
    "<meta http-equiv=refresh content='0;url=//evil.example/'>",
    "{{ 7*7 }}{% include '/etc/passwd' %}${7*7}<%= 7*7 %>",
    "&lt;script&gt;window.hacked=1&lt;/script&gt;\u202e\u2028\x1b[2J\x00",
    "<noscript><p title='</noscript><img src=x onerror=window.hacked=1>'>",
    "[a](javascript:window.hacked=1) [b](//evil.example) <javascript:window.hacked=1> <https://evil.example/>",
    "![a](https://evil.example/pixel.png 'x') ![b](data:image/svg+xml,<svg onload=window.hacked=1>)",
    "[a]: javascript:window.hacked=1\n\n[a] [![x](x)](data:text/html,<script>window.hacked=1</script>)",
    r"$\text{<script>window.hacked=1</script>}$ $\href{javascript:window.hacked=1}{x}$ $\left( x$",
    r"$$\style{background:url(//evil.example)}{x}$$ \(\class{a' onclick='x}{y}\) $$\cssId{step}{x}$$",
    "$$\n</math><script>window.hacked=1</script>\n$$ $<img src=x onerror=window.hacked=1>$",
    "```python' onmouseover='window.hacked=1\n<script>window.hacked=1</script>\n```\n```\"><img src=x>\nx\n```",
    "```html\n<script>window.hacked=1</script>\n```\n\n~~~svg onload=x\n<svg onload=window.hacked=1>\n~~~",
    "| <img src=x onerror=window.hacked=1> | b |\n|:--|--:|\n| [x](javascript:alert(1)) | <b onclick=x>y</b> |",
    "<template><script>window.hacked=1</script></template><object data=//evil.example/x></object>",
]


def hostile_runs(home: Path, text: str) -> list[wfdsl.Run]:
    """A run that ends well and one that fails, with the text as question, subtask, reply, names, worker and error."""

    async def speak(messages: list[dict[str, str]]) -> str:
        return text

    async def fail(messages: list[dict[str, str]]) -> str:
        raise ValueError(text)

    workflow = wfdsl.Workflow.from_lists([0, 0, 0, 1], [text, "a", "a", text], [[], [0], [0], "all"])
    found = []
    for worker in (speak, fail):
        pool = wfdsl.Pool.from_functions([speak, worker], names=[text[:40].replace("\n", " ").strip(), "other"])
        options: dict[str, Any] = {"names": (text, "b", "c", "d"), "origin": {"file": text, "policy": text}}
        try:
            found.append(asyncio.run(wfdsl.run(workflow, text, pool, journal=home / "journal.db", **options)))
        except wfdsl.RunFailed as error:
            found.append(error.run)
    return found


def pages_of(runs: list[wfdsl.Run]) -> list[str]:
    """The addresses of all pages that show these runs."""
    first, second = (run.id for run in runs)
    paths = ["/", f"/compare?run={first}&run={second}"]
    for run in (first, second):
        paths += [f"/runs/{run}?view={view}" for view in ("conversation", "graph", "time")]
        paths += [f"/runs/{run}/steps/0", f"/runs/{run}/steps/3"]
    return paths


class Structure(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))


_SHELL = "html head meta title link script body a header nav main div aside section"
_TEXT = "kbd h1 h2 h3 p span code small bdi pre del ins details summary ol ul li dl dt dd figure time"
_TABLES_AND_FORMS = "table thead tbody tr th td form label input select option button textarea fieldset legend"
_PICTURES = "svg rect path circle text g style desc"
_MARKUP = "h4 h5 h6 strong em s blockquote br hr b math mrow mi mn mo mtext msup msub mfrac"
ELEMENTS = set(f"{_SHELL} {_TEXT} {_TABLES_AND_FORMS} {_PICTURES} {_MARKUP}".split())
ADDRESSES = {"href", "src", "action", "data-live"}


def assert_only_our_own(page: str) -> None:
    """Nothing on the page is made by a text: no element, no script, no attribute that acts, no address."""
    found = Structure(page).elements
    scripts = [attributes for tag, attributes in found if tag == "script"]

    assert [tag for tag, _ in found if tag not in ELEMENTS] == []
    assert "\u202e" not in page
    assert scripts == [{"type": "module", "src": f"/view{asset('viewer.js')}"}]
    for _, attributes in found:
        assert [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc")] == []
        assert all(attributes[name].startswith(("/view/", "#", "?")) for name in ADDRESSES & attributes.keys())


@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_text_adds_no_element_and_no_attribute(client: TestClient, journal: Path, text: str) -> None:
    for path in pages_of(hostile_runs(journal.parent, text)):
        assert_only_our_own(client.get(f"/view{path}").text)
