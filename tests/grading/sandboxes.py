"""The sandbox that tests share, or the reason why this machine has none; and the processes that it may have left."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from wfdsl.grading.sandbox import Sandbox, SandboxLimits, SandboxMissing
from wfdsl.grading.sandbox.isolation import private_id

LIMITS = SandboxLimits(memory_mib=256, processes=8, files_mib=4, output_bytes=1 << 20)


def _found() -> tuple[Sandbox | None, str]:
    """A sandbox that is there and does not hold is not a reason to skip."""
    try:
        sandbox = Sandbox(slots=2, limits=LIMITS)
        asyncio.run(sandbox.probe())
    except SandboxMissing as problem:
        if "does not hold" in str(problem):
            raise
        return None, str(problem)
    return sandbox, ""


_SANDBOX, _REASON = _found()
needs_sandbox = pytest.mark.skipif(_SANDBOX is None, reason=_REASON)


def the_sandbox() -> Sandbox:
    """The one that all tests share."""
    assert _SANDBOX is not None, _REASON
    return _SANDBOX


def left_running() -> list[str]:
    """Processes of the sandbox that are still there: those with one of its private ids, or else our own children."""
    private = {str(private_id(slot)) for slot in range(8)} if os.geteuid() == 0 else set()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines = dict(line.split(":\t", 1) for line in (folder / "status").read_text("utf-8").splitlines())
        except (OSError, ValueError):
            continue
        ours = lines["PPid"].strip() == str(os.getpid()) and lines["Name"] == "bwrap"
        if lines["Uid"].split()[0] in private or ours:
            found.append(f"{folder.name} {lines['Name']} {lines['State']}")
    return found
