"""Several servers on one home spend one key's budget together; in mid-run one of them may be killed."""

from __future__ import annotations

import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2

from wfdsl.server.keys import make_key

from .conftest import FILES, ServerProcess, prepare
from .provider import Provider

CALL_USD: Final = 18e-6  # 10 tokens of input and 4 of output


class Spent(NamedTuple):
    """What came of the requests."""

    statuses: Counter[int]
    """How many requests ended so; 0: their server was killed."""
    paid_usd: float
    """As the provider has counted it."""
    afterwards: int
    """How a request to a server that is started later ends."""
    limit_usd: float
    seconds: float


def spend(folder: Path, provider: Provider, *, processes: int, requests: int, kill: bool) -> Spent:
    """Send requests with one key to servers in turn; the key's budget is enough for half of them."""
    prepare(folder, provider.url)
    pool = folder / "pool.toml"
    pool.write_text(pool.read_text().replace("retries = 0", "retries = 0\nmax_tokens = 10"))
    limit_usd = requests * CALL_USD
    key = make_key(str(folder / "keys.toml"), "ann", {"usd": limit_usd})
    servers = [ServerProcess(folder, *FILES, "--keys", "keys.toml", "--quiet") for _ in range(processes)]

    def ask(number: int) -> int:
        if kill and number == requests // 4:
            servers[-1].process.send_signal(signal.SIGKILL)
        body: Any = {"model": "two", "messages": [{"role": "user", "content": f"Why {number}?"}]}
        url, headers = servers[number % processes].url, {"Authorization": f"Bearer {key}"}
        try:
            return httpx2.post(
                f"{url}/chat/completions", json=body, headers=headers, timeout=120, verify=False
            ).status_code
        except httpx2.TransportError:
            return 0

    began = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        statuses = Counter(threads.map(ask, range(requests)))
    seconds = time.monotonic() - began
    for each in servers:
        each.stop()
    servers = [ServerProcess(folder, *FILES, "--keys", "keys.toml", "--quiet")] * processes
    afterwards = ask(requests)
    servers[0].stop()
    return Spent(statuses, len(provider.bodies) * CALL_USD, afterwards, limit_usd, seconds)
