"""The filter of system calls for programs in a sandbox, as classic BPF: one text of instructions for each machine.

It refuses what nothing else bounds: memory that outlives its process, new namespaces, keyrings, io_uring,
other processes' memory, sockets of every family but AF_UNIX, and calls of a foreign architecture. A program that is
`alone`, in the tier without namespaces, may also start no process, make no socket, and change no file's owner or mode.
"""

from __future__ import annotations

import platform
import struct
from typing import NamedTuple, TypeAlias

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_AF_UNIX = 1
_PR_SET_PDEATHSIG = 1
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag of clone(2)
_CLONE_THREAD = 0x00010000
_X32 = 0x40000000  # the second set of numbers that x86-64 has for the same calls
_CLONE3 = 435  # on every architecture, like all numbers from 424 on
_MODERN = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 447)
"""io_uring_*, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_getfd, mount_setattr, memfd_secret."""
_MODERN_ALONE = (424, 434, 440, 448, 452, 463, 466)
"""pidfd_send_signal, pidfd_open, process_madvise, process_mrelease, fchmodat2, setxattrat, removexattrat."""


_Line: TypeAlias = tuple[int, int, int, int]
"""An instruction, its jumps if it is true or not, and its operand."""


class _Machine(NamedTuple):
    """Numbers of system calls. Source: asm/unistd_64.h and asm-generic/unistd.h of Linux."""

    audit: int
    clone: int
    socket: int
    socketpair: int
    prlimit: int
    prctl: int
    refused: tuple[int, ...]
    """shmget, msgget, semget, mq_open, memfd_create; unshare, setns, mount, umount2, pivot_root, chroot; add_key,
    request_key, keyctl; ptrace, process_vm_readv, process_vm_writev; bpf, perf_event_open, userfaultfd,
    name_to_handle_at, open_by_handle_at; kexec_load, init_module, finit_module, delete_module, swapon, reboot, acct,
    quotactl, syslog, personality."""
    refused_alone: tuple[int, ...]
    """fork, vfork; execve, execveat; connect, bind; chmod, fchmod, fchmodat, chown, fchown, lchown, fchownat; utime,
    utimes, futimesat, utimensat; setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr; setpriority,
    sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr, ioprio_set; migrate_pages, move_pages,
    kcmp."""


MACHINES = {
    "x86_64": _Machine(
        *(0xC000003E, 56, 41, 53, 302, 157),
        (
            *(29, 68, 64, 240, 319, 272, 308, 165, 166, 155, 161, 248, 249, 250, 101, 310, 311),
            *(321, 298, 323, 303, 304, 246, 175, 313, 176, 167, 169, 163, 179, 103, 135),
        ),
        (
            *(57, 58, 59, 322, 42, 49, 90, 91, 268, 92, 93, 94, 260, 132, 235, 261, 280),
            *(188, 189, 190, 197, 198, 199, 141, 142, 144, 203, 314, 251, 256, 279, 312),
        ),
    ),
    "aarch64": _Machine(
        *(0xC00000B7, 220, 198, 199, 261, 167),
        (
            *(194, 186, 190, 180, 279, 97, 268, 40, 39, 41, 51, 217, 218, 219, 117, 270, 271),
            *(280, 241, 282, 264, 265, 104, 105, 273, 106, 224, 142, 89, 60, 116, 92),
        ),
        (
            *(221, 281, 203, 200, 52, 53, 55, 54, 88, 5, 6, 7, 14, 15, 16),
            *(140, 118, 119, 122, 274, 30, 238, 239, 272),
        ),
    ),
}
"""What there is a filter for."""


def seccomp_filter(*, alone: bool = False) -> bytes:
    """The filter for this machine, as the kernel and bubblewrap's `--seccomp` read it."""
    machine = MACHINES[platform.machine()]
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
    for number in (*machine.refused, *_MODERN, *((*machine.refused_alone, *_MODERN_ALONE) if alone else ())):
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | _EPERM)]
    if alone:
        lines += [(_EQUAL, 0, 1, machine.socket), (_RETURN, 0, 0, _ERROR | _EAFNOSUPPORT)]
        # Only streams: the ends of other kinds can be sent to any address. A thread is a clone with its flag.
        lines += _where(machine.socketpair, 1, (_ANY_BIT, 0, 1, 0xE))
        lines += _where(machine.clone, 0, (_ANY_BIT, 1, 0, _CLONE_THREAD))
        lines += _where(machine.prlimit, 0, (_EQUAL, 1, 0, 0))  # of itself
        lines += _where(machine.prctl, 0, (_EQUAL, 0, 1, _PR_SET_PDEATHSIG))
    else:
        lines += _where(machine.socket, 0, (_EQUAL, 1, 0, _AF_UNIX), _EAFNOSUPPORT)
        lines += _where(machine.clone, 0, (_ANY_BIT, 0, 1, _NEW_NAMESPACES))
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _where(number: int, argument: int, test: _Line, error: int = _EPERM) -> list[_Line]:
    """Refuse a call for one of its arguments: `test` jumps over 0 instructions to refuse it, and over 1 to allow it."""
    return [
        (_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, _ARGUMENTS + 8 * argument),  # its lower half, which holds every flag that is asked for here
        test,
        (_RETURN, 0, 0, _ERROR | error),
        (_RETURN, 0, 0, _ALLOW),
    ]
