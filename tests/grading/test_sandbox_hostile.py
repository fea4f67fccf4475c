"""Hostile programs, one by one: none succeeds, and none leaves a process or a file.

What the sandbox itself tries at its first use (full folders, memory, other ids) is not tried again here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.grading.sandboxes import LIMITS, in_both_tiers, left_running, needs_sandbox, the_sandbox
from wfdsl.grading.sandbox import Ran

MIB = 1 << 20
ONLY_FIRST = [pytest.param("bubblewrap", marks=needs_sandbox)]
_used = ["bubblewrap"]


@pytest.fixture(autouse=True, params=in_both_tiers)
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    _used[0] = request.param
    yield request.param
    assert left_running() == []


async def run(source: str, *, stdin: str = "", timeout_s: float = 10.0) -> Ran:
    return await the_sandbox(_used[0]).run(textwrap.dedent(source), stdin=stdin, timeout_s=timeout_s)


def is_there(folder: str, name: str) -> bool:
    return Path(folder, name).exists()


async def said(source: str, *, stdin: str = "") -> str:
    ran = await run(source, stdin=stdin)
    assert (ran.ending, ran.exit_code) == ("ended", 0), ran
    return ran.output.decode().strip()


async def test_the_keys_of_the_caller_cannot_be_read_in_any_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WFDSL_TEST_KEY", "canary-4711")

    found = await said(
        """
        import glob, os
        texts = [str(os.environ)]
        for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline") + glob.glob("/proc/*/task/*/environ"):
            try:
                texts.append(open(path, errors="replace").read())
            except OSError:
                pass
        print(len(texts), any("canary" in text for text in texts))
        """
    )

    assert int(found.split()[0]) >= (3 if _used[0] == "bubblewrap" else 1)
    assert found.endswith("False")


@pytest.mark.parametrize("folder", ["/", "/dev", "/usr/lib", "/etc", "/proc", "/proc/sys/kernel", "/var"])
async def test_nothing_can_be_written_outside_of_two_folders(folder: str) -> None:
    found = await said(
        f"""
        try:
            open("{folder}/wfdsl-test", "w").write("x")
            print("written")
        except OSError as problem:
            print(type(problem).__name__)
        """
    )

    assert found in {"OSError", "PermissionError", "FileNotFoundError"}
    assert not is_there(folder, "wfdsl-test")


@pytest.mark.parametrize("tier", ONLY_FIRST, indirect=True)
async def test_the_next_program_finds_no_file_of_the_one_before() -> None:
    await said("open('/tmp/a', 'w').write('x'); open('/dev/shm/a', 'w').write('x')")

    found = [await said("import os; print(os.listdir('/tmp') + os.listdir('/dev/shm'))") for _ in range(4)]

    assert found == ["[]"] * 4


@pytest.mark.parametrize(
    "start",
    ["os.fork() or signal.pause()", "threading.Thread(target=time.sleep, args=(30,), daemon=True).start()"],
    ids=["processes", "threads"],
)
@pytest.mark.parametrize("tier", ONLY_FIRST, indirect=True)
async def test_processes_and_threads_have_a_limit(start: str) -> None:
    found = await said(
        f"""
        import os, signal, threading, time
        count = 0
        try:
            while True:
                {start}
                count += 1
        except (BlockingIOError, RuntimeError):
            print(count, flush=True)
        """
    )

    assert 0 < int(found) <= LIMITS.processes


DOORS = [
    "libc.unshare(0x10000000)",  # a user namespace
    "libc.unshare(0x00020000)",  # a mount namespace
    "libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",  # clone
    "libc.syscall(435, 0, 0)",  # clone3
    "libc.setns(3, 0)",
    "libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0)",
    "libc.ptrace(16, 1, 0, 0)",
    "libc.shmget(0, 4096, 0o1600)",
    "libc.memfd_create(b'x', 0)",
    "libc.syscall(250, 0, -3, 0)",  # keyctl
    "libc.syscall(321, 0, 0, 0)",  # bpf
    "libc.syscall(425, 8, 0)",  # io_uring_setup
    "libc.chroot(b'/tmp')",
    "libc.syscall(310, 1, 0, 0, 0, 0, 0)",  # process_vm_readv
]
DOORS_ALONE = [
    "libc.fork()",
    "libc.syscall(57)",  # fork
    "libc.syscall(59, b'/bin/sh', 0, 0)",  # execve
    "libc.chmod(b'/usr/lib', 0o777)",
    "libc.chown(b'/usr/lib', 0, 0)",
    "libc.truncate(b'/etc/hostname', 0)",
    "libc.utimes(b'/usr/lib', 0)",
    "libc.symlink(b'/etc', b'/tmp/wfdsl-link')",
    "libc.prlimit(1, 7, 0, 0)",
    "libc.setpriority(0, 1, 19)",
    "libc.prctl(1, 0, 0, 0, 0)",  # to outlive its parent
    "libc.socketpair(1, 2, 0, ctypes.byref((ctypes.c_int * 2)()))",  # datagrams, which go anywhere
    "libc.mkdir(b'/tmp/wfdsl-folder', 0o777)",
    "libc.rename(b'/etc/hostname', b'/etc/x')",
]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize(
    ("tier", "call"),
    [
        pytest.param(*tier.values, call, marks=tier.marks)
        for tier, calls in zip(in_both_tiers, (DOORS, DOORS + DOORS_ALONE), strict=True)
        for call in calls
    ],
    indirect=["tier"],
)
async def test_doors_into_the_kernel_are_closed(call: str) -> None:
    result, number = (
        await said(f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint({call}, ctypes.get_errno())")
    ).split()

    assert result == "-1"
    assert number in {"1", "38", *(("13", "18", "22") if call in DOORS_ALONE else ())}  # EPERM, ENOSYS; EACCES, EXDEV


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_flood_of_output_is_cut_and_ends_the_program(stream: str) -> None:
    ran = await run(f"import sys\nwhile True: sys.{stream}.write('x' * 65536)", timeout_s=20.0)

    assert ran.ending == "output"
    assert len(ran.output) <= LIMITS.output_bytes + MIB


@pytest.mark.parametrize("tier", in_both_tiers[1:], indirect=True)
async def test_one_process_without_namespaces_has_a_folder_a_socketpair_and_threads() -> None:
    found = await said(
        """
        import asyncio, tempfile, threading
        with tempfile.TemporaryDirectory() as folder:
            open(folder + "/a", "w").write("x")
            thread = threading.Thread(target=print, args=(open(folder + "/a").read(),))
            thread.start()
            thread.join()
        asyncio.run(asyncio.sleep(0))
        """
    )

    assert found == "x"


async def test_no_socket_but_a_local_one_can_be_made(tier: str) -> None:
    """By number: AF_INET, AF_NETLINK, AF_PACKET, AF_VSOCK and all that Python has no name for."""
    found = await said(
        """
        import ctypes
        libc = ctypes.CDLL(None)
        opened = [family for family in range(64) if any(libc.socket(family, kind, 0) >= 0 for kind in (1, 2, 3, 5))]
        print(opened)
        """
    )

    assert found == ("[1]" if tier == "bubblewrap" else "[]")


async def test_signals_reach_no_process_outside() -> None:
    found = await said(
        f"""
        import os, signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for target in ({os.getpid()}, {os.getppid()}):
            try:
                os.kill(target, signal.SIGKILL)
                print("sent")
            except (ProcessLookupError, PermissionError):
                print("refused")
        try:
            os.kill(-1, signal.SIGTERM)
        except (ProcessLookupError, PermissionError):
            pass
        print("alive")
        """
    )

    assert found.split() == ["refused", "refused", "alive"]


FORKS = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
IGNORES = """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    pass
"""


@pytest.mark.parametrize("source", ["while True: pass", FORKS, IGNORES], ids=["loops", "forks", "ignores signals"])
async def test_an_endless_program_is_ended_whole_at_its_time_limit(source: str) -> None:
    ran = await run(source, timeout_s=0.3)

    assert (ran.ending, ran.exit_code) == ("timeout", None)
    assert 0.3 <= ran.seconds < 20


@pytest.mark.parametrize("pipes", ["", "os.close(1); os.close(2)"])
@pytest.mark.parametrize("tier", ONLY_FIRST, indirect=True)
async def test_daemons_end_with_their_program(pipes: str) -> None:
    started = time.monotonic()

    ran = await run(
        f"""
        import os, time
        if not os.fork():
            os.setsid()
            if not os.fork():
                {pipes or "pass"}
                time.sleep(60)
            os._exit(0)
        print("gone", flush=True)
        """
    )

    assert (ran.ending, ran.output) == ("ended", b"gone\n")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/etc/passwd", "/etc/hostname", "/proc/kcore", str(Path.home()), __file__]
)
async def test_files_of_the_host_are_not_there(path: str) -> None:
    found = await said(
        f"""
        import os, sys
        path = {path!r}
        try:
            if os.path.isdir(path):  # of a home that has the interpreter in it, the way to it can be seen
                print([name for name in os.listdir(path) if name not in sys.executable])
            else:
                print(open(path).read(1))
        except OSError as problem:
            print(type(problem).__name__)
        """
    )

    assert found in {"FileNotFoundError", "PermissionError", "[]"}


async def test_installed_packages_are_not_there() -> None:
    found = await said(
        """
        import importlib.util
        print([name for name in ("pydantic", "wfdsl", "wfdsl_rl", "pytest") if importlib.util.find_spec(name)])
        """
    )

    assert found == "[]"


async def test_the_program_has_no_open_file_but_its_three_streams() -> None:
    found = await said(
        """
        import os
        def is_open(number):
            try:
                return bool(os.fstat(number))
            except OSError:
                return False
        print([number for number in range(64) if is_open(number)])
        """
    )

    assert found == "[0, 1, 2]"


@pytest.mark.slow
def test_everything_ends_when_the_grader_is_killed(tier: str) -> None:
    fork = "os.fork() or os.setsid()" if tier == "bubblewrap" else "pass"
    grader = f"""
import asyncio, os
from wfdsl.grading.sandbox import Sandbox, sandbox
from tests.grading.sandboxes import without_namespaces
async def main():
    if {tier == "Landlock"}:
        sandbox.with_bubblewrap = without_namespaces
    made = Sandbox(slots=1)
    await made.probe()
    running = asyncio.create_task(made.run("import os\\n{fork}\\nwhile True: pass", timeout_s=60))
    await asyncio.sleep(0.5)
    print(*below(os.getpid()), flush=True)
    await running
def below(pid):
    children = open(f"/proc/{{pid}}/task/{{pid}}/children").read().split()
    return [*children, *(one for child in children for one in below(child))]
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", grader], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        inside = process.stdout.readline().split()
        process.send_signal(signal.SIGKILL)

    left = inside
    for _ in range(200):
        left = [pid for pid in inside if _runs(pid)]
        if not left:
            break
        time.sleep(0.05)
    assert len(inside) >= (3 if tier == "bubblewrap" else 1)
    assert left == []


def _runs(pid: str) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return False
