"""The scripted server for each test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .scripted_server import Chat


@pytest.fixture
def chat() -> Iterator[Chat]:
    with Chat() as server:
        yield server
