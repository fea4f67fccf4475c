"""The sources of the site, and what is said of broken links."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from .notebook import NOTEBOOK, executed
from .pages import pages
from .site import BLOCK, broken_links, navigation, site_page, site_path

OUT_OF_THE_LIST = {"docs/README.md", "docs/skill/SKILL.md"}


def test_the_list_of_the_documentation_names_every_page_once() -> None:
    named = [path for part in navigation() for entry in part.values() for path in entry if isinstance(entry, list)]

    assert sorted(named) == sorted(
        site_path(page) for page in pages() if page[:5] == "docs/" if page not in OUT_OF_THE_LIST
    )


def test_every_relative_link_leads_to_a_page_or_a_copied_file_of_the_site() -> None:
    written = {page: site_page(page) for page in pages()}
    there = {site_path(page) for page in pages()} | {site_path(file) for _, files in written.values() for file in files}

    for page, (text, _) in written.items():
        for target in re.findall(r"\]\(([^)#\s:]+)[^)\s:]*\)", BLOCK.sub("", text)):
            place = posixpath.normpath(posixpath.join(posixpath.dirname(site_path(page)), target))
            assert place in there, f"{page}: {target}"


def test_the_cells_of_the_notebook_show_what_it_has_stored() -> None:
    ran, stored = (
        [_shown(output) for cell in notebook["cells"] for output in cell.get("outputs", [])]
        for notebook in (executed(), json.loads(NOTEBOOK.read_text("utf-8")))
    )

    assert ran == stored, "run python -m tests.docs.notebook"
    assert any("image/svg+xml" in kinds for kinds, _ in ran)


def _shown(output: dict[str, Any]) -> tuple[list[str], str]:
    """What an output consists of, and its text; pictures may change."""
    data = output.get("data", {})
    return list(data), output.get("text") or data["text/plain"]


def test_a_link_to_nothing_is_found_and_one_to_a_heading_is_not(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="a/#here"></a><a href="a/#gone"></a><a href="b/"></a><img src="c.png">'
    )
    (tmp_path / "a" / "index.html").write_text('<h2 id="here"></h2><a href="https://elsewhere/x"></a><a href="../">')

    assert broken_links(tmp_path) == ["index.html: a/#gone", "index.html: b/", "index.html: c.png"]
