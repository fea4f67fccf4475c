"""The first code inside, in the tier without namespaces: an interpreter gives up what it could do, before any program.

Landlock leaves it the files that it needs, a folder of its own, and no signal to others; the filter of system calls
leaves it this one process. Started by root, it takes a user id of its own.
"""

from __future__ import annotations

import posix

_READ, _WRITE_TOO = 0b1101, (1 << 13) - 1  # execute, read files and folders; all that the first version knows
_OF_FILES = 0b111 | 1 << 14 | 1 << 15
_KNOWN_FILES = (13, 14, 15, 15, 16)  # how many rights to files a version of Landlock knows


def confine(rules: bytes, readable: list[str], folder: str, who: int) -> None:
    """Never to be undone. Raises: OSError, if the kernel refuses a part of it."""
    import ctypes  # noqa: PLC0415  (not left to the program as a name)

    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: object) -> int:
        done = int(libc.syscall(number, *arguments))
        if done < 0:
            raise OSError(ctypes.get_errno(), f"system call {number}: {posix.strerror(ctypes.get_errno())}")
        return done

    version = call(444, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    every = (1 << _KNOWN_FILES[min(version, 5) - 1]) - 1
    handled = (ctypes.c_uint64 * 3)(every, 0b11, 0b11)  # files, TCP, and abstract sockets with signals
    ruleset = call(444, handled, ctypes.c_size_t(24 if version >= 6 else 16 if version >= 4 else 8), ctypes.c_uint(0))

    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))

    for path, rights in (*((path, _READ) for path in readable), ("/dev/null", _READ | 2), (folder, every)):
        try:
            opened = posix.open(path, posix.O_PATH | posix.O_CLOEXEC)
        except FileNotFoundError:
            continue
        is_folder = posix.fstat(opened).st_mode & 0o170000 == 0o040000
        allowed = Beneath(rights & every & (-1 if is_folder else _OF_FILES), opened)
        call(445, ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(allowed), ctypes.c_uint(0))
        posix.close(opened)
    if who:
        posix.setgroups([])
        posix.setresgid(who, who, who)
        posix.setresuid(who, who, who)
    else:
        header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        if libc.capset(header, none):
            raise OSError(ctypes.get_errno(), "capset")
    for option, value in ((1, 9), (38, 1)):  # dies with its parent; no new privileges
        if libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)):
            raise OSError(ctypes.get_errno(), f"prctl {option}")
    call(446, ctypes.c_int(ruleset), ctypes.c_uint(0))
    posix.close(ruleset)

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    program = Program(len(rules) // 8, rules)
    if libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(program), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise OSError(ctypes.get_errno(), "prctl 22")
