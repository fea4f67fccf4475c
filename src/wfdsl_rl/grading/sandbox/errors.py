"""What can go wrong with the sandbox itself, as opposed to a program in it."""

from __future__ import annotations

from wfdsl.errors import UsageError, WfdslError

INSTALL = (
    "install bubblewrap 0.8 or later (Debian, Ubuntu: `apt-get install bubblewrap`; Fedora: `dnf install bubblewrap`)"
)


class SandboxMissing(UsageError):  # noqa: N818  (a state, as in ModuleNotFound)
    """Programs cannot be run safely on this machine. The message says why and what to install or allow."""


class SandboxFailed(WfdslError):  # noqa: N818  (a kind of failure, as WorkerFailure is)
    """The sandbox could not run a program this time: nothing is known about the program."""
