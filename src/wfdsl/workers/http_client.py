"""How a worker's HTTP client is set up: time limits, proxy, certificates, further headers. Both SDKs take the same.

Redirects are not followed: they would carry the key to another place.
"""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2

from wfdsl.errors import UsageError
from wfdsl.workers.keys import read_variable

if TYPE_CHECKING:
    from wfdsl.workers.pool import WorkerEntry

_CONNECT_TIMEOUT_S: Final = 10.0
"""Our choice."""
_CONNECTIONS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
"""How many calls run at once is decided by the pool's limits, so that none waits here without being seen."""


def http_options(entry: WorkerEntry) -> dict[str, Any]:
    """The options of an SDK's HTTP client for this worker.

    Raises:
        UsageError: the certificates cannot be read, or the proxy's variable is not set.
    """
    options: dict[str, Any] = {"follow_redirects": False, "limits": _CONNECTIONS, "timeout": time_limits(entry)}
    if entry.ca_file is not None:
        options["verify"] = _trusting(entry, entry.ca_file)
    if entry.proxy_env is not None or entry.proxy is not None:
        options["proxy"] = _proxy(entry)
    elif _is_this_machine(entry.base_url):
        options["trust_env"] = False  # a proxy set for the outside world cannot reach in here
    return options


def time_limits(entry: WorkerEntry, *, streams: bool = False) -> httpx2.Timeout:
    """How long the connection may be silent: a reply in one piece comes all at the end."""
    silence_s = min(entry.idle_timeout_s, entry.timeout_s) if streams else entry.timeout_s
    return httpx2.Timeout(silence_s, connect=min(_CONNECT_TIMEOUT_S, entry.timeout_s), pool=None)


def secret_headers(entry: WorkerEntry) -> dict[str, str]:
    """The headers whose values are in the environment.

    Raises:
        UsageError: a variable is not set.
    """
    return {name: read_variable(entry, variable, "a header") for name, variable in entry.headers_env.items()}


def _proxy(entry: WorkerEntry) -> httpx2.Proxy:
    url = read_variable(entry, entry.proxy_env, "a proxy") if entry.proxy_env else entry.proxy or ""
    try:
        return httpx2.Proxy(url)
    except (ValueError, httpx2.InvalidURL):
        where = f"the environment variable {entry.proxy_env}" if entry.proxy_env else "proxy"
    # Raised out here, and without the URL: there may be a password in it.
    raise UsageError(f'worker "{entry.name}": {where} is no URL of a proxy, such as "http://host:3128"')


def _trusting(entry: WorkerEntry, ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f'worker "{entry.name}": cannot read certificates from ca_file {ca_file}: {error}') from error


def _is_this_machine(url: str | None) -> bool:
    host = urlsplit(url or "").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
