"""How much a program in the sandbox may use.

Limits of memory and files hold for each process, so what a program can use at most is `processes` times as much.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What one program may use. The defaults are our choice: programs of the usual benchmarks need far less."""

    memory_mib: int = 512
    """Address space of each process, in MiB."""
    processes: int = 16
    """Processes and threads at one time."""
    files_mib: int = 32
    """All files in `/tmp`, the largest file, and all files in `/dev/shm`, each, in MiB. Nothing else can be written."""
    open_files: int = 128
    """Files that one process has open at one time."""
    output_bytes: int = 4 * MIB
    """What is read of a program's output, and of one result, before it is killed."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: a limit is at least 1")
