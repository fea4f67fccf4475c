"""Write the sources of the documentation's site to build/, or check the site: `python -m tests.docs.site [--check]`.

Pages get their generated parts, links that lead out of docs/ get copies of what they name, and the navigation is the
list of pages in docs/README.md. `make site` does this, lets Zensical build build/site, and checks every link in it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from .generated import page_text
from .pages import ROOT, pages, read_page
from .write_llms import llms

BUILD = ROOT / "build"
HOME = "README.md"
LIST = "docs/README.md"
_LINK = re.compile(r"(!?\[(?:`[^`\n]*`|[^\]`])*\])\((?P<target>[^)\s#]+)?(?P<heading>#[^)\s]*)?\)")
BLOCK = re.compile(r"^ *(`{3,}).*?^ *\1$", re.MULTILINE | re.DOTALL)
_COLOURED_AS = {"completion": "python", "lark": "text"}
"""Languages of examples that Pygments does not know."""


def site_path(path: str) -> str:
    """Where the site has a file of the repository."""
    named = {HOME: "index.md", LIST: "pages.md"}
    return named.get(path) or path.removeprefix("docs/")


def site_page(page: str) -> tuple[str, set[str]]:
    """A page's Markdown for the site, and the files of the repository that it links to."""
    files: set[str] = set()

    def link(found: re.Match[str]) -> str:
        target, heading = found["target"] or "", found["heading"] or ""
        if not target or re.match(r"\w+:", target):
            return found[0]
        path = os.path.normpath(os.path.join(os.path.dirname(page), target))  # noqa: PTH118, PTH120
        if (ROOT / path).is_dir():
            return found[1].removeprefix("[").removesuffix("]")
        if path not in pages():
            files.add(path)
        return f"{found[1]}({os.path.relpath(site_path(path), os.path.dirname(site_path(page)) or '.')}{heading})"  # noqa: PTH120

    text, done, end = page_text(page), [], 0
    for code in BLOCK.finditer(text):
        done += [_LINK.sub(link, text[end : code.start()]), code[0]]
        end = code.end()
    whole = "".join([*done, _LINK.sub(link, text[end:])])
    for ours, theirs in _COLOURED_AS.items():
        whole = re.sub(rf"^( *`{{3,}}){ours}$", rf"\1{theirs}", whole, flags=re.MULTILINE)
    return whole, files


def navigation() -> list[dict[str, Any]]:
    """The pages under their headings, as docs/README.md lists them."""
    found: list[dict[str, Any]] = [{"wfdsl": "index.md"}]
    for part in re.split(r"^\*\*", read_page(LIST), flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("**")
        found.append({title: re.findall(r"\]\(([^)#\s]+\.md)\)", rest)})
    return found


def write() -> None:
    """Write build/docs and build/zensical.toml."""
    shutil.rmtree(BUILD / "docs", ignore_errors=True)
    for page in pages():
        text, files = site_page(page)
        _place(page).write_text(text, "utf-8")
        for file in files:
            shutil.copyfile(ROOT / file, _place(file))
    (BUILD / "docs/llms.txt").write_text(llms(), "utf-8")
    nav = json.dumps(navigation(), ensure_ascii=False).replace('": ', '" = ')
    settings = (ROOT / "zensical.toml").read_text("utf-8")
    (BUILD / "zensical.toml").write_text(settings.replace("[project]\n", f"[project]\nnav = {nav}\n", 1), "utf-8")


class _Html(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids |= {value for name, value in attrs if name == "id" and value}
        self.links += [value for name, value in attrs if name in ("href", "src") and value and tag != "base"]


def broken_links(site: Path) -> list[str]:
    """The links of a built site that lead to no file or to no heading."""
    parsed = {file.resolve(): _Html(file) for file in site.rglob("*.html")}
    broken = []
    for page, html in parsed.items():
        for link in html.links:
            path, _, heading = unquote(link).partition("#")
            if re.match(r"\w+:|//", link) or page.name == "404.html":
                continue
            file = (page.parent / path.partition("?")[0]).resolve() if path else page
            file = file / "index.html" if file.is_dir() else file
            if not file.exists() or (heading and file in parsed and heading not in parsed[file].ids):
                broken.append(f"{page.relative_to(site.resolve())}: {link}")
    return broken


def _place(path: str) -> Path:
    place = BUILD / "docs" / site_path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def main() -> int:
    """Write, or check."""
    if "--check" not in sys.argv:
        write()
        return 0
    broken = broken_links(BUILD / "site")
    print("\n".join(broken) or "every link of build/site leads somewhere")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
