"""Isolation of programs in two tiers: with bubblewrap, or where namespaces are refused, with Landlock.

bubblewrap builds a separate file system: system libraries, the interpreter and its standard library, read-only, and two
small folders in memory. Run by root, it starts the interpreter under a private user id, because no process limit binds
root. Run by another user, it makes a user namespace and refuses further ones. Without namespaces, as in most
containers, the interpreter confines itself (`inside/confine.py`): files by Landlock, processes and sockets by the
filter of system calls, and it is one process with a folder of its own.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wfdsl.errors import UsageError, WfdslError
from wfdsl.grading.sandbox.seccomp import MACHINES

INSTALL = (
    "install bubblewrap 0.8 or later (Debian, Ubuntu: `apt-get install bubblewrap`; Fedora: `dnf install bubblewrap`)"
)
MIB = 1 << 20
_ALL_IDS = 1 << 31
_FIRST_ID = 1_800_000_000  # far above what accounts and container mappings use
_IDS_PER_PROCESS = 256  # user ids of one process that grades, one for each of those inside
_held_ids: Counter[int] = Counter()  # by all sandboxes of this process: how many of those inside have each id
_holding = threading.Lock()
_PACKAGES = "/packages"
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache")
_DEVICES = ("/dev/zero", "/dev/random", "/dev/urandom")
_LANDLOCK, _LANDLOCK_TRUNCATE, _LANDLOCK_SIGNALS = 444, 3, 6  # a system call, and versions that bound these
INSIDE = {
    "PATH": "/nowhere",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # the order of sets does not change from one run to the next
    "PYTHONUTF8": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
"""The environment of a program."""


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

    tier: Literal["bubblewrap", "Landlock"]
    is_private: bool
    """Whether each program has a user id of its own, which only root can give."""
    before: tuple[str, ...] = ()
    """bubblewrap's command up to the interpreter, without what differs by process."""
    readable: tuple[str, ...] = ()
    """What Landlock lets a program read."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What is given from outside. bubblewrap's own environment could be read inside, so it has none."""

    def command(self, who: int, source: str, *, seccomp_fd: int) -> tuple[str, ...]:
        """The command that runs `source`, which is ours and trusted, under a private user id, or 0 for one's own."""
        run = (_interpreter(), "-s", "-P", "-S", "-B", "-c", source)  # no settings, no packages, no current folder
        if self.tier == "Landlock":
            return run
        command = (*self.before, "--seccomp", str(seccomp_fd), "--")
        if who:
            command += (_tool("setpriv"), "--reuid", str(who), "--regid", str(who), "--clear-groups", "--")
        return (*command, *run)


def with_bubblewrap(limits: SandboxLimits, packages: Path | None) -> Isolation:
    """The first tier. Raises: SandboxMissing, if a tool is missing or this kind of machine is not known."""
    _require_linux()
    root = os.geteuid() == 0
    shown, bubblewrap, setpriv = site_packages(packages), _tool("bwrap"), _tool("setpriv") if root else ""
    before = (
        *_processes(bubblewrap, setpriv),
        *("--die-with-parent", "--new-session", "--clearenv"),
        *("--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if root else ("--unshare-user", "--disable-userns", "--cap-drop", "ALL")),
        *_file_system(limits),
        *(("--ro-bind", setpriv, setpriv) if root else ()),
        *(("--ro-bind", shown, _PACKAGES) if shown else ()),
        *("--remount-ro", "/"),
        *(word for name, value in INSIDE.items() for word in ("--setenv", name, value)),
        *(("--setenv", "PYTHONPATH", _PACKAGES) if shown else ()),
        *("--chdir", "/tmp"),
    )
    return Isolation("bubblewrap", root, before)


def with_landlock(packages: Path | None) -> Isolation:
    """The second tier. Raises: SandboxMissing, if the kernel cannot keep programs from others' processes."""
    _require_linux()
    shown = site_packages(packages)
    seen = (_interpreter(), *_standard_library(), *((shown,) if shown else ()))
    is_private = os.geteuid() == 0 and all(above.stat().st_mode & 1 for one in seen for above in Path(one).parents)
    version = ctypes.CDLL(None).syscall(_LANDLOCK, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    needed, kernel = (_LANDLOCK_TRUNCATE, "6.2") if is_private else (_LANDLOCK_SIGNALS, "6.12")
    if version < needed:
        raise SandboxMissing(
            f"Landlock needs Linux {kernel} here, or a program could signal other processes or change their files"
        )
    readable = (*_LIBRARIES, "/lib", "/lib64", *_DEVICES, *seen)
    return Isolation("Landlock", is_private, readable=readable, environment={**INSIDE, "PYTHONPATH": shown})


def site_packages(packages: Path | None) -> str:
    """The folder with the modules of a virtual environment, or of a folder of packages itself.

    Raises: SandboxMissing, if there is no such folder.
    """
    if packages is None:
        return ""
    inside = sorted(packages.glob("lib/python*/site-packages")) or [packages]
    if not inside[0].is_dir():
        raise SandboxMissing(f"the packages of programs: there is no folder {packages}")
    return str(inside[0].resolve())


@contextmanager
def private_id() -> Iterator[int]:
    """A user id that no account has, and no other process inside, as long as there are enough of them."""
    with _holding:
        number = min(range(_IDS_PER_PROCESS), key=_held_ids.__getitem__)
        _held_ids[number] += 1
    try:
        yield numbered_id(number)
    finally:
        with _holding:
            _held_ids[number] -= 1


def numbered_id(number: int) -> int:
    """The private id with this number. Raises: SandboxMissing, if this container has too few."""
    lines = map(str.split, Path("/proc/self/uid_map").read_text("ascii").splitlines())
    mapped = max((int(count) for first, _, count in lines if first == "0"), default=0)  # the container's, or all
    if mapped >= _ALL_IDS:
        return _FIRST_ID + os.getpid() % 1_000_000 * _IDS_PER_PROCESS + number
    if mapped > 60_000:
        return 40_000 + (os.getpid() * _IDS_PER_PROCESS + number) % 20_000
    raise SandboxMissing(
        f"root of this container has {mapped} user ids, too few for one that is private to a program: "
        "run as a user other than root, or map at least 65,536 ids"
    )


def _processes(bubblewrap: str, setpriv: str) -> tuple[str, ...]:
    """bubblewrap in a process namespace that ends with it; bubblewrap ends with the process that grades.

    For root `unshare` makes the namespace: bubblewrap gives up its rights and could not end a process under another id.
    No zombie is left to the machine's init process, which in a container may never reap it.

    If the machine runs out of memory, the kernel ends these first and not their neighbours. That is set from outside,
    and inside `/proc` is read-only, so that no program can take it back.
    """
    choom = shutil.which("choom")  # of util-linux; a wish: the limits hold without it
    first_to_go = (os.path.realpath(choom), "-n", "1000", "--") if choom else ()
    if not setpriv:
        return (*first_to_go, bubblewrap, "--unshare-pid", "--as-pid-1")
    namespace = (_tool("unshare"), "--pid", "--mount-proc", "--fork", "--kill-child")
    return (setpriv, "--pdeathsig", "KILL", "--", *first_to_go, *namespace, "--", bubblewrap)


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        cure = INSTALL if name == "bwrap" else "install util-linux"
        raise SandboxMissing(f"programs are graded in a sandbox, and `{name}` is not installed: {cure}")
    return os.path.realpath(found)


def _require_linux() -> None:
    if not sys.platform.startswith("linux") or platform.machine() not in MACHINES:
        raise SandboxMissing("programs are graded in a sandbox that needs Linux on x86-64 or arm64: grade them there")


def _interpreter() -> str:
    return os.path.realpath(sys._base_executable)  # type: ignore[attr-defined,no-any-return]


def _file_system(limits: SandboxLimits) -> list[str]:
    """Libraries, the interpreter at its usual path, so that it finds its own, and folders in memory."""
    words = [word for place in (*_LIBRARIES, _interpreter(), *_standard_library()) for word in _read_only(place)]
    for link in map(Path, ("/lib", "/lib64")):
        words += ["--symlink", str(link.readlink()), str(link)] if link.is_symlink() else _read_only(str(link))
    for packages in (f"{place}/site-packages" for place in _standard_library()):
        if Path(packages).is_dir():  # hidden
            words += ["--size", "4096", "--tmpfs", packages, "--remount-ro", packages]
    words += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/proc"]
    for folder in ("/dev/shm", "/tmp"):
        words += ["--perms", "1777", "--size", str(limits.files_mib * MIB), "--tmpfs", folder]
    return [*words, "--remount-ro", "/dev"]


def _read_only(place: str) -> list[str]:
    """A place below folders that every user can enter: by default bubblewrap copies the permissions from outside."""
    above = reversed(Path(place).parents[:-1])
    made = [word for folder in above for word in ("--perms", "0755", "--dir", str(folder))]
    return [*made, "--ro-bind-try", place, place]


def _standard_library() -> tuple[str, ...]:
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}  # not those of a virtual environment
    library = [sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib")]
    shared = sysconfig.get_config_var("INSTSONAME") if sysconfig.get_config_var("Py_ENABLE_SHARED") else None
    if shared:
        library.append(str(Path(sysconfig.get_config_var("LIBDIR")) / shared))
    return tuple(dict.fromkeys(library))
