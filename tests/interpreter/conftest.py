"""A journal in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wfdsl.interpreter.journal import Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal is."""
    return tmp_path / "home" / "journal.db"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    """The journal, open."""
    with Journal(path) as opened:
        yield opened
