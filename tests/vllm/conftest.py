"""Two vLLM servers, one after the other: each holds a gigabyte, so a module asks for one of them and ends it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vllm.server import PYTHON, SHORT, make_folder, serving

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in this folder, and skip it where there is no vLLM."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.vllm)
            if not PYTHON:
                item.add_marker(pytest.mark.skip(reason="needs vLLM: run `make vllm`"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of random weights."""
    return make_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def vllm(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server as vLLM's defaults make it; its base URL."""
    log = tmp_path_factory.mktemp("vllm") / "log"
    with serving(folder, log, "--max-model-len", "8192", "--enable-prompt-tokens-details") as url:
        yield url


@pytest.fixture(scope="module")
def guidance(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that decodes with llguidance and is told to keep its texts short; its base URL."""
    log = tmp_path_factory.mktemp("guidance") / "log"
    backend = ("--structured-outputs-config.backend", "guidance")
    with serving(folder, log, "--max-model-len", str(SHORT), *backend) as url:
        yield url
