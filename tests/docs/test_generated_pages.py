"""The generated parts of pages are whole, pages lead where they say, and the site has them all."""

from __future__ import annotations

import re

import pytest

from .generated import MARK, REGIONS, page_text
from .pages import ROOT, pages, read_page
from .write_python import docstrings_of_fields, public_types

_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def test_every_generated_part_is_on_a_page() -> None:
    assert {name for page in pages() for name in MARK.findall(read_page(page))} == set(REGIONS)


@pytest.mark.parametrize(("page", "column"), [("python.md", 2), ("python-rl.md", 2), ("train.md", 3)])
def test_every_name_and_key_says_what_it_means(page: str, column: int) -> None:
    rows = re.findall(r"^\| `.*\|$", page_text(f"docs/reference/{page}"), re.MULTILINE)

    assert rows
    assert not [row for row in rows if not re.split(r"(?<!\\)\|", row)[column].strip()]


@pytest.mark.parametrize("package", ["wfdsl", "wfdsl.testing", "wfdsl_rl"])
def test_every_field_of_a_public_type_says_what_it_means(package: str) -> None:
    fields = {f"{name}.{field}": doc for name, kind in public_types(package).items() for field, doc in _told(kind)}

    assert [field for field, doc in fields.items() if not doc] == []


@pytest.mark.parametrize("page", pages())
def test_links_lead_to_files_and_headings_that_are_there(page: str) -> None:
    broken = [target for target in _targets(page) if not _leads_somewhere(page, target)]

    assert not broken


def _told(kind: type) -> list[tuple[str, str]]:
    return [
        (name, doc) for name, doc in docstrings_of_fields(kind).items() if name[0] != "_" and name != "model_config"
    ]


def _targets(page: str) -> list[str]:
    found = [link["target"] for link in _LINK.finditer(_CODE.sub("", page_text(page)))]
    found += [link["target"] for link in re.finditer(r"\[`[^`]*`\]\((?P<target>[^)\s]+)\)", page_text(page))]
    return [target for target in found if not target.startswith(("http://", "https://"))]


def _leads_somewhere(page: str, target: str) -> bool:
    path, _, heading = target.partition("#")
    file = ((ROOT / page).parent / path if path else ROOT / page).resolve()
    name = file.relative_to(ROOT).as_posix()
    return file.exists() and (not heading or heading in _anchors(page_text(name)))


def _anchors(text: str) -> set[str]:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.*?) *$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
