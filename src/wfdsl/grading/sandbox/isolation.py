"""Isolation of programs with bubblewrap: its command, the seccomp filter, resource limits, and what can be missing.

bubblewrap builds a separate file system: system libraries, the interpreter and its standard library, read-only, and two
small folders in memory. Run by root, it starts the interpreter under a private user id, because no process limit binds
root. Run by another user, it makes a user namespace and refuses further ones. The seccomp filter refuses what this does
not bound: memory that outlives its process (System V segments, memory files), new namespaces, the kernel's keyrings,
looking into other processes, and rarely used kernel interfaces.
"""

from __future__ import annotations

import os
import platform
import shutil
import struct
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wfdsl.errors import UsageError, WfdslError

INSTALL = (
    "install bubblewrap 0.8 or later (Debian, Ubuntu: `apt-get install bubblewrap`; Fedora: `dnf install bubblewrap`)"
)
MIB = 1 << 20
_ALL_IDS = 1 << 31
_FIRST_ID = 1_800_000_000  # far above what accounts and container mappings use
IDS_PER_PROCESS = 256  # user ids of one process that grades, one for each of those inside
_PACKAGES = "/packages"
_INSIDE = {
    "PATH": "/nowhere",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # the order of sets does not change from one run to the next
    "PYTHONUTF8": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_AF_UNIX = 1
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag of clone(2)
_X32 = 0x40000000  # the second set of numbers that x86-64 has for the same calls
_CLONE3 = 435  # on every architecture, like all numbers from 424 on
_MODERN = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 447)
"""io_uring_*, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_getfd, mount_setattr, memfd_secret."""
# For each machine: its audit number, the numbers of clone and socket, and the refused calls, in this order: shmget,
# msgget, semget, mq_open, memfd_create; unshare, setns, mount, umount2, pivot_root, chroot;
# add_key, request_key, keyctl; ptrace,
# process_vm_readv, process_vm_writev; bpf, perf_event_open, userfaultfd, name_to_handle_at, open_by_handle_at;
# kexec_load, init_module, finit_module, delete_module, swapon, reboot, acct, quotactl, syslog, personality.
# Source: asm/unistd_64.h and asm-generic/unistd.h of Linux.
_MACHINES: dict[str, tuple[int, int, int, tuple[int, ...]]] = {
    "x86_64": (
        0xC000003E,
        56,
        41,
        (
            *(29, 68, 64, 240, 319, 272, 308, 165, 166, 155, 161, 248, 249, 250, 101, 310, 311),
            *(321, 298, 323, 303, 304, 246, 175, 313, 176, 167, 169, 163, 179, 103, 135),
        ),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        198,
        (
            *(194, 186, 190, 180, 279, 97, 268, 40, 39, 41, 51, 217, 218, 219, 117, 270, 271),
            *(280, 241, 282, 264, 265, 104, 105, 273, 106, 224, 142, 89, 60, 116, 92),
        ),
    ),
}


class SandboxMissing(UsageError):  # noqa: N818  (a state, as in ModuleNotFound)
    """Programs cannot be run safely on this machine. The message says why and what to install or allow."""


class SandboxFailed(WfdslError):  # noqa: N818  (a kind of failure, as WorkerFailure is)
    """The sandbox could not run a program this time: nothing is known about the program."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What one program may use. The defaults are our choice: programs of the usual benchmarks need far less."""

    memory_mib: int = 512
    """Address space of each process, in MiB."""
    all_memory_mib: int = 1024
    """Memory of all processes of a sandbox together, in MiB. `slots` times as much is what all sandboxes may use."""
    processes: int = 16
    """Processes and threads at one time."""
    files_mib: int = 32
    """All files in `/tmp`, the largest file, and all files in `/dev/shm`, each, in MiB. Nothing else can be written."""
    files: int = 10_000
    """Files and folders in `/tmp`, and as many in `/dev/shm`."""
    open_files: int = 128
    """Files that one process has open at one time."""
    output_bytes: int = 4 * MIB
    """What is read of a program's output, and of one result, before it is killed."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1 (got {getattr(self, name)})")


@dataclass(frozen=True, slots=True)
class Isolation:
    """What is the same for every program: the tools, and what a program can see."""

    before: tuple[str, ...]
    """The command up to the interpreter, without what differs by process."""
    as_root: bool
    setpriv: str
    interpreter: str

    def command(self, number: int, source: str, *, seccomp_fd: int) -> tuple[str, ...]:
        """The command that runs `source`, which is ours and trusted, in isolation."""
        command = (*self.before, "--seccomp", str(seccomp_fd), "--")
        if self.as_root:
            who = str(private_id(number))
            command += (self.setpriv, "--reuid", who, "--regid", who, "--clear-groups", "--")
        return (*command, *interpreter(self.interpreter, source))


def isolation_of(limits: SandboxLimits, packages: Path | None) -> Isolation:
    """What is needed to run programs here.

    Raises: SandboxMissing, if a tool is missing or this kind of machine is not known.
    """
    if not sys.platform.startswith("linux") or not seccomp_supported():
        raise SandboxMissing("programs are graded in a sandbox that needs Linux on x86-64 or arm64: grade them there")
    root = runs_as_root()
    bubblewrap = _tool("bwrap", INSTALL)
    setpriv = _tool("setpriv", "install util-linux") if root else ""
    path = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
    before = (
        *_processes(bubblewrap, setpriv),
        *("--die-with-parent", "--new-session", "--clearenv"),
        *("--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if root else ("--unshare-user", "--disable-userns", "--cap-drop", "ALL")),
        *_libraries(),
        *_python(path),
        *(("--ro-bind", setpriv, setpriv) if root else ()),
        *(("--ro-bind", str(packages.resolve()), _PACKAGES) if packages else ()),
        *_writable(limits),
        *(word for name, value in _INSIDE.items() for word in ("--setenv", name, value)),
        *(("--setenv", "PYTHONPATH", _PACKAGES) if packages else ()),
        *("--chdir", "/tmp"),
    )
    return Isolation(before, root, setpriv, path)


def interpreter(path: str, source: str) -> tuple[str, ...]:
    """An interpreter that reads no settings, no packages of users and no current folder."""
    return (path, "-s", "-P", "-S", "-B", "-c", source)


def private_id(number: int) -> int:
    """A user id that no account has, and no process with another number."""
    mapped = _mapped_ids()
    if mapped >= _ALL_IDS:
        return _FIRST_ID + os.getpid() % 1_000_000 * IDS_PER_PROCESS + number % IDS_PER_PROCESS
    if mapped > 60_000:
        return 40_000 + (os.getpid() * IDS_PER_PROCESS + number) % 20_000
    raise SandboxMissing(
        f"root of this container has {mapped} user ids, too few for one that is private to a program: "
        "run as a user other than root, or map at least 65,536 ids"
    )


def runs_as_root() -> bool:
    """Whether this process is root, so that programs get a private id."""
    return os.geteuid() == 0


def inside_names() -> list[str]:
    """The variables that a program finds in its environment."""
    return [*_INSIDE, "PYTHONPATH", "PWD"]


def seccomp_supported() -> bool:
    """Whether there is a filter for this machine."""
    return platform.machine() in _MACHINES


def seccomp_filter() -> bytes:
    """The filter for this machine, as bubblewrap's `--seccomp` reads it."""
    audit, clone, socket, refused = _MACHINES[platform.machine()]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
        (_EQUAL, 0, 1, _CLONE3),  # its flags are in memory, where no filter looks; the C library falls back to clone
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
    ]
    for number in (*refused, *_MODERN):
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | _EPERM)]
    lines += [
        (_EQUAL, 0, 4, socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 1, 0, _AF_UNIX),
        (_RETURN, 0, 0, _ERROR | _EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 3, clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERROR | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _mapped_ids() -> int:
    """How many user ids from 0 on exist here: all of them, or the container's."""
    counts = []
    for line in Path("/proc/self/uid_map").read_text("ascii").splitlines():
        first, _, count = (int(word) for word in line.split())
        counts.append(count if first == 0 else 0)
    return max(counts, default=0)


def _processes(bubblewrap: str, setpriv: str) -> tuple[str, ...]:
    """bubblewrap in a process namespace that ends with it; bubblewrap ends with the process that grades.

    For root `unshare` makes the namespace: bubblewrap gives up its rights and could not end a process under another id.
    No zombie is left to the machine's init process, which in a container may never reap it.
    """
    if not setpriv:
        return (*_first_to_go(), bubblewrap, "--unshare-pid", "--as-pid-1")
    unshare = _tool("unshare", "install util-linux")
    namespace = (unshare, "--pid", "--mount-proc", "--fork", "--kill-child")
    return (setpriv, "--pdeathsig", "KILL", "--", *_first_to_go(), *namespace, "--", bubblewrap)


def _first_to_go() -> tuple[str, ...]:
    """If the machine runs out of memory, the kernel ends this program and not its neighbours.

    It is set from outside, and inside `/proc` is read-only, so that no program can take it back.
    """
    found = shutil.which("choom")  # of util-linux; a wish: the limits hold without it
    return (os.path.realpath(found), "-n", "1000", "--") if found else ()


def _tool(name: str, cure: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SandboxMissing(f"programs are graded in a sandbox, and `{name}` is not installed: {cure}")
    return os.path.realpath(found)


def _libraries() -> list[str]:
    words = [*_folders_above("/usr/share/zoneinfo"), *_folders_above("/etc/ld.so.cache")]
    for folder in ("/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache"):
        words += ["--ro-bind-try", folder, folder]
    for folder in ("/lib", "/lib64"):
        if Path(folder).is_symlink():
            words += ["--symlink", str(Path(folder).readlink()), folder]
        else:
            words += ["--ro-bind-try", folder, folder]
    return words


def _python(path: str) -> list[str]:
    """The interpreter at its usual path, so that it finds its library; installed packages are hidden."""
    library = [sysconfig.get_path(name, vars=_base()) for name in ("stdlib", "platstdlib")]
    shared = sysconfig.get_config_var("INSTSONAME") if sysconfig.get_config_var("Py_ENABLE_SHARED") else None
    if shared:
        library.append(str(Path(sysconfig.get_config_var("LIBDIR")) / shared))
    words = [*_folders_above(path), "--ro-bind", path, path]
    for place in dict.fromkeys(library):
        words += [*_folders_above(place), "--ro-bind-try", place, place]
        packages = Path(place) / "site-packages"
        if packages.is_dir():
            words += ["--size", "4096", "--tmpfs", str(packages), "--remount-ro", str(packages)]
    return words


def _folders_above(path: str) -> list[str]:
    """Folders that every user can enter; by default bubblewrap copies the permissions from outside."""
    above = reversed(Path(path).parents[:-1])
    return [word for folder in above for word in ("--perms", "0755", "--dir", str(folder))]


def _base() -> dict[str, str]:
    return {
        **dict.fromkeys(("base", "installed_base"), sys.base_prefix),
        **dict.fromkeys(("platbase", "installed_platbase"), sys.base_exec_prefix),
    }


def _writable(limits: SandboxLimits) -> Sequence[str]:
    size = str(limits.files_mib * MIB)
    words = ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/dev/shm", "/tmp"):
        words += ["--perms", "1777", "--size", size, "--tmpfs", folder]
    return (*words, "--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/")
