"""Open files: each connection is one, and the usual limit of 1,024 is soft."""

from __future__ import annotations

import sys
from typing import Final

_CALLS: Final = 5
"""Connections to providers that a workflow of five steps may have at once."""
_OTHERS: Final = 256
"""Files that are no connections: the journal, logs, libraries, sandboxes. Our choice."""


def allow_connections(requests: int, workflows: int) -> str:
    """Raise the soft limit of open files for so many at once; what is wrong if the hard limit is lower."""
    if sys.platform == "win32":
        return ""
    import resource  # noqa: PLC0415  (not on Windows)

    files = requests + _CALLS * workflows + _OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most == files:
        return ""
    return (
        f"this process may open {hard:,} files, and {files:,} are needed for as many requests and calls as it may have "
        f"at once: raise the hard limit (ulimit -Hn {files})"
    )
