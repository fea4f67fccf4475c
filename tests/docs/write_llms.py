"""llms.txt: the pages with their first sentences, for language models that read the documentation."""

from __future__ import annotations

import re

from .pages import pages, read_page

_HIDDEN = re.compile(r"<!--.*?-->|^```.*?^```$", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r".*?(?:\.(?=\s)|$)", re.DOTALL)


def llms() -> str:
    """The README's beginning and a link to each page."""
    links = [_link(page) for page in pages() if page.count("/") == 2]
    return "\n".join(["# wfdsl", "", f"> {first_sentence(read_page('README.md'))}", "", "## Pages", "", *links, ""])


def _link(page: str) -> str:
    text = read_page(page)
    title = text.partition("\n")[0].removeprefix("# ")
    return f"- [{title}]({page}): {first_sentence(text)}"


def first_sentence(text: str) -> str:
    """The first sentence of a page below its title, without Markdown links."""
    paragraphs = [part.strip() for part in _HIDDEN.sub("", text).split("\n\n")[1:]]
    found = _SENTENCE.match(next(part for part in paragraphs if part))
    assert found is not None
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)|[*]", r"\1", found[0]).split())
