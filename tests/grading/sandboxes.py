"""The sandbox that tests share, or the reason why this machine has none; and the processes that it may have left."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest

from wfdsl.grading.sandbox import Sandbox, SandboxLimits, SandboxMissing
from wfdsl.grading.sandbox.isolation import numbered_id

LIMITS = SandboxLimits(memory_mib=256, processes=8, files_mib=4, output_bytes=1 << 20)


def _found(*, first: bool) -> tuple[Sandbox | None, str]:
    """A sandbox that is there and does not hold is not a reason to skip."""
    try:
        made = Sandbox(slots=2, limits=LIMITS)
        with pytest.MonkeyPatch.context() as patch:
            if not first:
                patch.setattr("wfdsl.grading.sandbox.sandbox.with_bubblewrap", without_namespaces)
            tier = asyncio.run(made.probe()).tier
    except SandboxMissing as problem:
        if "does not hold" in str(problem):
            raise
        return None, str(problem)
    return (made, "") if (tier == "bubblewrap") == first else (None, f"only {tier} is here")


def without_namespaces(*_: object) -> NoReturn:
    """As in a container that refuses them."""
    raise SandboxMissing("namespaces are refused")


_SANDBOX, _REASON = _found(first=True)
_SECOND, _SECOND_REASON = _found(first=False)
needs_sandbox = pytest.mark.skipif(_SANDBOX is None, reason=_REASON)
in_both_tiers = [
    pytest.param("bubblewrap", marks=needs_sandbox),
    pytest.param("Landlock", marks=pytest.mark.skipif(_SECOND is None, reason=_SECOND_REASON)),
]


def the_sandbox(tier: str = "bubblewrap") -> Sandbox:
    """The one that all tests share."""
    found = _SANDBOX if tier == "bubblewrap" else _SECOND
    assert found is not None
    return found


def left_running() -> list[str]:
    """Processes of the sandbox that are still there: those with one of its private ids, or else our own children."""
    private = {str(numbered_id(slot)) for slot in range(8)} if os.geteuid() == 0 else set()
    found, command = [], b""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines = dict(line.split(":\t", 1) for line in (folder / "status").read_text("utf-8").splitlines())
        except (OSError, ValueError):
            continue
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes()
        ours = lines["PPid"].strip() == str(os.getpid()) and (
            lines["Name"].strip() == "bwrap" or b"\nconfine(" in command
        )
        if lines["Uid"].split()[0] in private or ours:
            found.append(f"{folder.name} {lines['Name']} {lines['State']}")
    return found
