"""A test of the sandbox before it is used: a hostile program, an endless one, and one that writes without end.

The hostile program tries what programs have tried in practice, and says what it was able to do. If it could do
anything, nothing is graded on this machine.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from wfdsl.grading.sandbox.isolation import INSIDE, INSTALL, MIB, SandboxFailed, SandboxLimits, SandboxMissing
from wfdsl.grading.sandbox.process import Ran

_HOSTILE = """
import ctypes, errno, json, os, resource, signal, socket

libc = ctypes.CDLL(None, use_errno=True)
broken = []
LIMITS = json.loads(input())

def attempt(name, act):
    try:
        if act():
            broken.append(name)
    except (OSError, MemoryError, ValueError):
        pass

def foreign_environment():
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            said = open(f"/proc/{process}/environ", "rb").read()
        except OSError:
            continue
        names = {part.partition(b"=")[0].decode() for part in said.split(b"\\0") if part}
        if names - set(LIMITS["names"]):
            return True
    return False

def outside_process():
    return any(int(name) > 60 for name in os.listdir("/proc") if name.isdigit())

def writes(path):
    with open(path, "w") as file:
        file.write("x")
    return True

def fills(folder):
    for name in ("/large", "/more"):
        with open(folder + name, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, LIMITS["files"])
    return True

def forks():
    children = []
    try:
        for _ in range(LIMITS["processes"] + 2):
            child = os.fork()
            if not child:
                signal.pause()
            children.append(child)
        return True
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

attempt("read an environment", foreign_environment)
attempt("see other processes", outside_process)
attempt("read passwords", lambda: open("/etc/shadow").read())
attempt("see home folders", lambda: os.listdir("/home"))
for folder in ("/", "/dev/", "/usr/lib/", "/proc/sys/kernel/", os.path.dirname(os.__file__) + "/"):
    attempt("write to " + folder, lambda: writes(folder + "wfdsl-probe"))
attempt("fill /tmp", lambda: fills("/tmp"))
attempt("fill /dev/shm", lambda: fills("/dev/shm"))
attempt("signal its parent", lambda: os.getppid() and os.kill(os.getppid(), 0) is None)
attempt("make a socket of another family", lambda: [socket.socket(family) for family in (2, 10, 16, 40)])
attempt("make a user namespace", lambda: libc.unshare(0x10000000) == 0)
attempt("make a memory file", lambda: libc.memfd_create(b"x", 0) >= 0)
attempt("make shared memory", lambda: libc.shmget(0, 4096, 0o1600) >= 0)
attempt("be root", lambda: 0 in os.getresuid() and LIMITS["root"])
attempt("become root", lambda: os.setuid(0) or LIMITS["root"])
attempt("reach a network", lambda: socket.create_connection(("192.0.2.1", 80), timeout=0.2))
attempt("see a network", lambda: {name for _, name in socket.if_nameindex()} - {"lo"})
attempt("take too much memory", lambda: bytearray(LIMITS["memory"]))
attempt("start too many processes", forks)
print(json.dumps(broken))
"""


async def probe(run: Callable[..., Awaitable[Ran]], limits: SandboxLimits, *, is_private: bool) -> None:
    """Test the isolation of programs, with `Slot.run`. Raises: SandboxMissing, naming what a program was able to do."""
    facts = {
        "names": [*INSIDE, "PYTHONPATH", "PWD", "TMPDIR"],
        "root": is_private,
        "files": limits.files_mib * MIB,
        "memory": limits.memory_mib * MIB,
        "processes": limits.processes,
    }
    try:
        hostile = await run(_HOSTILE, stdin=json.dumps(facts), timeout_s=20.0)
        endless = await run("while True: pass", stdin="", timeout_s=0.05)
        flood = await run("while True: print('x' * 65536)", stdin="", timeout_s=20.0)
        broken = [str(name) for name in json.loads(hostile.output)]
    except (ValueError, SandboxFailed) as problem:
        said = str(problem)
        if isinstance(problem, ValueError):
            said = f"the test of the sandbox ended with {hostile.ending}: {hostile.errors[-600:]}"
        raise SandboxMissing(f"{said}\n{_cure(said)}") from problem
    broken += ["outlive its time"] if endless.ending != "timeout" else []
    broken += ["write without end"] if flood.ending != "output" else []
    if broken:
        raise SandboxMissing(
            f"the sandbox of this machine does not hold: a program in it could {', '.join(broken)}. "
            "Update bubblewrap and the kernel, or grade on another machine"
        )


def _cure(said: str) -> str:
    if "namespace" in said or "Permission denied" in said or "not permitted" in said:
        return (
            "This machine does not let you make namespaces: allow them (`sysctl kernel.unprivileged_userns_clone=1`, "
            "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`), run as root, or give the container the "
            "capability SYS_ADMIN"
        )
    return f"Otherwise: {INSTALL}"
