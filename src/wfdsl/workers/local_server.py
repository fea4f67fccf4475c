"""The process that serves a GGUF model over HTTP: `python -m wfdsl.workers.local_server`, which `local.py` starts.

It is a process of its own because the C++ server can hang when its interpreter exits. It reads one JSON line from
standard input, which has the fields of `ServedModel` and the key that callers must show. It prints one JSON line with
its address when it is ready, and ends when standard input closes or its parent is gone, so that it cannot outlive the
parent, however that one dies.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, Final

_PARENT_CHECK_S: Final = 1.0
_ERRORS_ONLY: Final = 1


def main() -> None:
    """Serve until the parent lets go."""
    address_file = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the C++ code prints must not be taken for the address
    asked = json.loads(sys.stdin.readline())
    for watch in (_end_with_input, _end_with_parent):
        threading.Thread(target=watch, daemon=True).start()
    try:
        server = _serve(**asked)
    except RuntimeError as error:  # the parent says what to do, because a process may also crash over a broken file
        print(error, file=sys.stderr, flush=True)  # before the address's file closes: then the parent ends this process
        sys.exit(1)
    address_file.write(json.dumps({"url": server.listening_address}) + "\n")
    address_file.flush()
    threading.Event().wait()


def _serve(*, key: str, path: str, context: int, slots: int, threads: int, exact: bool) -> Any:
    import xllamacpp  # noqa: PLC0415  (an extra, and only this process needs it)

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {"local"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_parallel = slots
    params.n_ctx = context * slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads or max(_cores() // 2, 1)
    # The same call gets the same reply: none begins from what another one has left in the cache.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    if exact:
        # Flash attention and the usual cache round to 16 bits: log-probabilities are then off by up to 0.01.
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.ui = params.endpoint_slots = False
    params.verbosity = _ERRORS_ONLY
    return xllamacpp.Server(params)


def _cores() -> int:
    """The cores that this process may use. Threads wait for each other after each layer, so one that shares its core
    with another program holds up all: with half of the cores a busy machine stays ten times faster (two cores, load 9),
    and an idle one is half as fast.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with_input() -> None:
    while sys.stdin.buffer.read(1024):
        pass
    os._exit(0)


def _end_with_parent() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_S)
    os._exit(0)


if __name__ == "__main__":
    main()
