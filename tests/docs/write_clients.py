"""The tables of clients, as Markdown, from what `make clients` has found."""

from __future__ import annotations

from tests.clients.table import rows, suite_rows


def client_table() -> str:
    """Which client works with what."""
    return "\n".join(rows())


def suite_table() -> str:
    """Which tests of the compliance suite pass."""
    return "\n".join(suite_rows())
