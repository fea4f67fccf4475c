"""The process that serves a GGUF model over HTTP: `python -m wfdsl.workers.local_server MODEL --slots N ...`.

It is a process of its own because the C++ server can hang when its interpreter exits. It reads the key that callers
must show from standard input, prints one JSON line with its address when it is ready, and ends when standard input
closes or its parent is gone, so that it cannot outlive the parent, however that one dies.
"""

from __future__ import annotations

import argparse
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
    options = _options()
    address_file = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the C++ code prints must not be taken for the address
    key = sys.stdin.readline().strip()
    for watch in (_end_with_input, _end_with_parent):
        threading.Thread(target=watch, daemon=True).start()
    try:
        server = _serve(options, key)
    except RuntimeError as error:  # the parent says what to do, because a process may also crash over a broken file
        print(error, file=sys.stderr, flush=True)  # before the address's file closes: then the parent ends this process
        sys.exit(1)
    address_file.write(json.dumps({"url": server.listening_address}) + "\n")
    address_file.flush()
    threading.Event().wait()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="wfdsl.workers.local_server")
    parser.add_argument("model")
    parser.add_argument("--context", type=int, default=4096, help="tokens per slot")
    parser.add_argument("--slots", type=int, default=2, help="calls answered at the same time")
    parser.add_argument("--threads", type=int, default=0, help="0: half as many as cores")
    parser.add_argument(
        "--exact", action="store_true", help="attention in 32-bit numbers, which takes twice the memory"
    )
    return parser.parse_args()


def _serve(options: argparse.Namespace, key: str) -> Any:
    import xllamacpp  # noqa: PLC0415  (an extra, and only this process needs it)

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {"local"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads or max(_cores() // 2, 1)
    # The same call gets the same reply: none begins from what another one has left in the cache.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    if options.exact:
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
