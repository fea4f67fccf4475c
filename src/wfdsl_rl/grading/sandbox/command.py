"""The command that puts a Python interpreter behind walls.

bubblewrap builds a file system of its own: system libraries, the interpreter and its standard library, read-only, and
two small folders in memory. Run by root, it starts the interpreter under a private user id, because no process limit
binds root; run by anybody else, it makes a user namespace and closes the door to further ones.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl_rl.grading.sandbox import seccomp
from wfdsl_rl.grading.sandbox.errors import INSTALL, SandboxMissing
from wfdsl_rl.grading.sandbox.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl_rl.grading.sandbox.limits import SandboxLimits

_ALL_IDS = 1 << 31
_FIRST_ID = 1_800_000_000  # far above what accounts and container mappings use
IDS_EACH = 256  # user ids of one process that grades, one for each of those inside
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


@dataclass(frozen=True, slots=True)
class Walls:
    """What does not change from one program to the next: where the tools are and what is visible."""

    before: tuple[str, ...]
    """The command up to the interpreter, without what differs by process."""
    as_root: bool
    setpriv: str
    interpreter: str

    def command(self, number: int, source: str, *, seccomp_fd: int) -> tuple[str, ...]:
        """The command that runs `source`, which is ours and trusted, inside the walls."""
        command = (*self.before, "--seccomp", str(seccomp_fd), "--")
        if self.as_root:
            who = str(private_id(number))
            command += (self.setpriv, "--reuid", who, "--regid", who, "--clear-groups", "--")
        return (*command, *interpreter(self.interpreter, source))


def interpreter(path: str, source: str) -> tuple[str, ...]:
    """An interpreter that looks at no settings, no user's packages and no current folder."""
    return (path, "-s", "-P", "-S", "-B", "-c", source)


def walls(limits: SandboxLimits, packages: Path | None) -> Walls:
    """What is needed to run programs here.

    Raises: SandboxMissing, if a tool is missing or this kind of machine is not known.
    """
    if not sys.platform.startswith("linux") or not seccomp.supported():
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
    return Walls(before, root, setpriv, path)


def private_id(number: int) -> int:
    """A user id that no account has, and no process with another number."""
    mapped = _mapped_ids()
    if mapped >= _ALL_IDS:
        return _FIRST_ID + os.getpid() % 1_000_000 * IDS_EACH + number % IDS_EACH
    if mapped > 60_000:
        return 40_000 + (os.getpid() * IDS_EACH + number) % 20_000
    raise SandboxMissing(
        f"root of this container has {mapped} user ids, too few for one that is private to a program: "
        "run as a user other than root, or map at least 65,536 ids"
    )


def runs_as_root() -> bool:
    """Whether the walls are built by root, and programs get a private id."""
    return os.geteuid() == 0


def inside_names() -> list[str]:
    """The variables that a program finds in its environment."""
    return [*_INSIDE, "PYTHONPATH", "PWD"]


def _mapped_ids() -> int:
    """How many ids from 0 on exist here: all, or those of the container."""
    counts = []
    for line in Path("/proc/self/uid_map").read_text("ascii").splitlines():
        first, _, count = (int(word) for word in line.split())
        counts.append(count if first == 0 else 0)
    return max(counts, default=0)


def _processes(bubblewrap: str, setpriv: str) -> tuple[str, ...]:
    """bubblewrap in a process namespace that ends with it, with all that it holds, and it with the one that grades.

    For root `unshare` makes the namespace and not bubblewrap: that one gives up its rights and could not end a process
    under another id. Nobody is left over for the machine's first process to bury, which in a container never does it.
    """
    if not setpriv:
        return (bubblewrap, "--unshare-pid", "--as-pid-1")
    unshare = _tool("unshare", "install util-linux")
    namespace = (unshare, "--pid", "--mount-proc", "--fork", "--kill-child")
    return (setpriv, "--pdeathsig", "KILL", "--", *namespace, "--", bubblewrap)


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
    """The interpreter at its own place, so that it finds its library; other people's packages stay outside."""
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
    """Folders that anybody can pass through; by itself bubblewrap makes them as closed as they are outside."""
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
    return (*words, "--remount-ro", "/dev", "--remount-ro", "/")
