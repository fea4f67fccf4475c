"""Which system calls a program in the sandbox is refused, as the filter that the kernel runs.

What is refused is what the other walls do not bound: memory that outlives its process (System V segments, memory
files), new namespaces, the kernel's keyrings, looking into other processes, and rarely used doors into the kernel.
"""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag of clone(2)
_X32 = 0x40000000  # the second set of numbers that x86-64 has for the same calls

_CLONE3 = 435  # on every architecture, like all numbers from 424 on
_MODERN = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 447)
"""io_uring_*, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_getfd, mount_setattr, memfd_secret."""


@dataclass(frozen=True, slots=True)
class _Machine:
    audit: int
    clone: int
    refused: tuple[int, ...]


# The order of each row: shmget, msgget, semget, mq_open, memfd_create; unshare, setns, mount, umount2, pivot_root,
# chroot; add_key, request_key, keyctl; ptrace, process_vm_readv, process_vm_writev; bpf, perf_event_open,
# userfaultfd, name_to_handle_at, open_by_handle_at; kexec_load, init_module, finit_module, delete_module, swapon,
# reboot, acct, quotactl, syslog, personality. Source: asm/unistd_64.h and asm-generic/unistd.h of Linux.
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        56,
        (
            *(29, 68, 64, 240, 319, 272, 308, 165, 166, 155, 161, 248, 249, 250, 101, 310, 311),
            *(321, 298, 323, 303, 304, 246, 175, 313, 176, 167, 169, 163, 179, 103, 135),
        ),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        220,
        (
            *(194, 186, 190, 180, 279, 97, 268, 40, 39, 41, 51, 217, 218, 219, 117, 270, 271),
            *(280, 241, 282, 264, 265, 104, 105, 273, 106, 224, 142, 89, 60, 116, 92),
        ),
    ),
}


def supported() -> bool:
    """Whether there is a filter for this machine."""
    return platform.machine() in _MACHINES


def program() -> bytes:
    """The filter for this machine, as bubblewrap's `--seccomp` reads it."""
    machine = _MACHINES[platform.machine()]
    refused = (*machine.refused, *_MODERN)
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
        (_EQUAL, 0, 1, _CLONE3),  # its flags are in memory, where no filter looks; the C library falls back to clone
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
    ]
    for number in refused:
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | _EPERM)]
    lines += [
        (_EQUAL, 0, 3, machine.clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERROR | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
