"""Open files: the soft limit is raised for as many connections as there may be, and running out of them is named."""

from __future__ import annotations

import errno
import subprocess
import sys

import httpx2
import pytest

from wfdsl.workers.http_failure import failure_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")

RAISED = """
import resource
from wfdsl.server.listening import allow_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, 2000))
allow_open_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_the_soft_limit_is_raised_for_connections() -> None:
    done = subprocess.run([sys.executable, "-c", RAISED.format(soft=100)], capture_output=True, text=True, check=True)

    assert done.stdout == "(2000, 2000)\n"


def test_a_call_that_finds_no_file_left_does_not_blame_the_provider() -> None:
    found = ExceptionGroup("attempts", [OSError(errno.EMFILE, "Too many open files")])
    error = httpx2.ConnectError("All connection attempts failed", request=httpx2.Request("POST", "http://127.0.0.1:9"))
    error.__cause__ = found

    failure = failure_of(error)

    assert "this process has too many open files; raise `ulimit -n`" in str(failure)
    assert (failure.retryable, failure.sent) == (True, False)
