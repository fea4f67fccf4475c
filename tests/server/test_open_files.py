"""Open files: the soft limit is raised for as many connections as there may be, and running out of them is named."""

from __future__ import annotations

import errno
import subprocess
import sys

import httpx2
import pytest

from wfdsl.protocols import WorkerFailure
from wfdsl.workers.http_failure import with_failures
from wfdsl.workers.redaction import Scrubber

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")

RAISED = """
import resource
from wfdsl.server.listening import allow_connections
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(allow_connections(1000, 100))
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def limits_after(soft: int, hard: int) -> list[str]:
    code = RAISED.format(soft=soft, hard=hard)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_soft_limit_is_raised_to_what_requests_and_calls_need() -> None:
    assert limits_after(100, 2000) == ["", "(1756, 2000)"]
    assert limits_after(1900, 2000) == ["", "(1900, 2000)"]


def test_a_hard_limit_that_is_too_low_is_told_with_the_one_that_is_needed() -> None:
    said, limits = limits_after(100, 1200)

    assert limits == "(1200, 1200)"
    assert "may open 1,200 files, and 1,756 are needed" in said
    assert "ulimit -Hn 1756" in said


async def test_a_call_that_finds_no_file_left_does_not_blame_the_provider() -> None:
    async def call() -> None:
        request = httpx2.Request("POST", "http://127.0.0.1:9/v1")
        found = ExceptionGroup("attempts", [OSError(errno.EMFILE, "Too many open files")])
        raise httpx2.ConnectError("All connection attempts failed", request=request) from found

    with pytest.raises(WorkerFailure, match="this process has too many open files; raise `ulimit -n`") as failed:
        await with_failures(call(), httpx2.HTTPError, Scrubber())

    assert failed.value.retryable
    assert not failed.value.sent
