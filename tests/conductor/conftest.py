"""The scripted server for each test that asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .scripted_server import Chat

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer


@pytest.fixture
def chat(httpserver: HTTPServer) -> Chat:
    return Chat(httpserver)
