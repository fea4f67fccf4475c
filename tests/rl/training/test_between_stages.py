"""What a stage leaves behind in the process: nothing that the next one needs."""

from __future__ import annotations

import atexit
import gc
import socket
import weakref
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from torch.distributed import TCPStore  # noqa: E402
from trl import GRPOTrainer  # noqa: E402
from trl.generation.vllm_client import VLLMClient  # noqa: E402

from tests.rl.training.toy import from_warmup, with_stage  # noqa: E402
from wfdsl_rl.training.pipeline import run_pipeline  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.plan import Setup

pytestmark = pytest.mark.slow
_PLAIN = GRPOTrainer.__init__


class Beside:
    """Does to each trainer what vLLM does."""

    def __init__(self) -> None:
        self.alive: list[list[bool]] = []
        """At the start of each stage, whether the earlier trainers and their models are still there."""
        self._seen: list[weakref.ref[Any]] = []
        self._port = free_port()

    def make(self, trainer: Any, *about: Any, **options: Any) -> None:
        """Make a trainer as in a training with vLLM."""
        self.alive.append([each() is not None for each in self._seen])
        _PLAIN(trainer, *about, **options)
        self._seen += [weakref.ref(trainer), weakref.ref(trainer.model)]
        trainer.vllm_generation = SimpleNamespace(vllm_client=client_on(self._port))
        gc.freeze()  # as the start of vLLM's engine does


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def client_on(port: int) -> VLLMClient:
    """TRL's client, with a port opened as by vLLM's StatelessProcessGroup; without a server and NCCL."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen()
    listened = listening.detach()  # the store closes it
    store = TCPStore("127.0.0.1", port, 1, True, timedelta(seconds=20), use_libuv=False, master_listen_fd=listened)
    client = VLLMClient.__new__(VLLMClient)
    client.communicator = SimpleNamespace(group=SimpleNamespace(store=store, socket=None))
    atexit.register(client.close_communicator)
    return client


@pytest.fixture
def unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("unfrozen")
def test_a_stage_frees_its_trainer_and_the_port_of_its_vllm_server(
    trained: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Beside()

    def make(trainer: Any, *about: Any, **named: Any) -> None:
        beside.make(trainer, *about, **named)

    monkeypatch.setattr(GRPOTrainer, "__init__", make)
    setup = from_warmup(trained, tmp_path, max_steps=1)
    train = with_stage(setup.train, "recursion", max_steps=1)

    run_pipeline(replace(setup, train=train), ("base", "recursion"))

    assert beside.alive == [[], [False, False]]
