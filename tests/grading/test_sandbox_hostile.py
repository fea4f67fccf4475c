"""Hostile programs, one by one: none succeeds, and none leaves a process or a file."""

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

from tests.grading.sandboxes import LIMITS, left_running, needs_sandbox, the_sandbox
from wfdsl.grading.sandbox import Ran

pytestmark = needs_sandbox
MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    assert left_running() == []


async def run(source: str, *, stdin: str = "", timeout_s: float = 10.0) -> Ran:
    return await the_sandbox().run(textwrap.dedent(source), stdin=stdin, timeout_s=timeout_s)


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

    assert int(found.split()[0]) >= 3
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


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
async def test_the_two_folders_cannot_be_filled_beyond_their_size(folder: str) -> None:
    found = await said(
        f"""
        total = 0
        try:
            for number in range(64):
                with open(f"{folder}/{{number}}", "wb", buffering=0) as file:
                    for _ in range(16):
                        total += file.write(bytes(65536))
        except OSError as problem:
            print(problem.errno, total)
        """
    )

    number, total = found.split()
    assert number == "28"
    assert int(total) <= LIMITS.files_mib * MIB


async def test_the_next_program_finds_no_file_of_the_one_before() -> None:
    await said("open('/tmp/a', 'w').write('x'); open('/dev/shm/a', 'w').write('x')")

    found = [await said("import os; print(os.listdir('/tmp') + os.listdir('/dev/shm'))") for _ in range(4)]

    assert found == ["[]"] * 4


async def test_a_fork_bomb_runs_into_the_process_limit() -> None:
    found = await said(
        """
        import os, signal
        count = 0
        try:
            while True:
                if not os.fork():
                    signal.pause()
                count += 1
        except BlockingIOError:
            print(count)
        """
    )

    assert 0 < int(found) <= LIMITS.processes


async def test_a_fork_bomb_that_never_stops_is_ended_whole() -> None:
    ran = await run(
        """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
        """,
        timeout_s=0.5,
    )

    assert ran.ending == "timeout"


async def test_threads_count_as_processes() -> None:
    found = await said(
        """
        import threading, time
        count = 0
        try:
            while True:
                threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
                count += 1
        except RuntimeError:
            print(count, flush=True)
        """
    )

    assert 0 < int(found) <= LIMITS.processes


@pytest.mark.parametrize(
    "call",
    [
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
        "libc.setuid(0)",
    ],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
async def test_doors_into_the_kernel_are_closed(call: str) -> None:
    found = await said(
        f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        print({call}, ctypes.get_errno())
        """
    )

    result, number = found.split()
    assert result == "-1"
    assert number in {"1", "38"}  # EPERM, ENOSYS


async def test_memory_of_a_process_has_an_end() -> None:
    found = await said(
        f"""
        try:
            bytearray({LIMITS.memory_mib * MIB})
            print("taken")
        except MemoryError:
            print("refused")
        """
    )

    assert found == "refused"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_flood_of_output_is_cut_and_ends_the_program(stream: str) -> None:
    ran = await run(f"import sys\nwhile True: sys.{stream}.write('x' * 65536)", timeout_s=20.0)

    assert ran.ending == "output"
    assert len(ran.output) <= LIMITS.output_bytes + MIB


async def test_no_socket_but_a_local_one_can_be_made() -> None:
    """By number: AF_INET, AF_NETLINK, AF_PACKET, AF_VSOCK and all that Python has no name for."""
    found = await said(
        """
        import ctypes
        libc = ctypes.CDLL(None)
        opened = [family for family in range(64) if any(libc.socket(family, kind, 0) >= 0 for kind in (1, 2, 3, 5))]
        print(opened)
        """
    )

    assert found == "[1]"


async def test_no_server_of_the_host_answers_on_loopback() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        found = await said(
            f"""
            import socket
            try:
                socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), timeout=1)
                print("connected")
            except OSError:
                print("refused")
            """
        )

    assert found == "refused"


async def test_signals_reach_no_process_outside() -> None:
    found = await said(
        f"""
        import os, signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for target in ({os.getpid()}, {os.getppid()}):
            try:
                os.kill(target, signal.SIGKILL)
                print("sent")
            except ProcessLookupError:
                print("nobody")
        try:
            os.kill(-1, signal.SIGTERM)
        except ProcessLookupError:
            pass
        print("alive")
        """
    )

    assert found.split() == ["nobody", "nobody", "alive"]


async def test_an_endless_program_is_ended_at_its_time_limit() -> None:
    ran = await run("while True: pass", timeout_s=0.2)

    assert (ran.ending, ran.exit_code) == ("timeout", None)
    assert 0.2 <= ran.seconds < 10


async def test_a_program_that_ignores_every_signal_is_ended_too() -> None:
    ran = await run(
        """
        import signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            pass
        """,
        timeout_s=0.3,
    )

    assert ran.ending == "timeout"


@pytest.mark.parametrize("pipes", ["", "os.close(1); os.close(2)"])
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
    found = await said("import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")

    assert found == "[0, 1, 2, 3]"  # 3 is the listing itself


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives programs ids of their own")
async def test_a_program_is_not_root() -> None:
    found = await said("import os; print(*os.getresuid(), *os.getresgid(), os.getgroups())")

    ids = found.replace("[]", "").split()
    assert len(ids) == 6
    assert all(int(one) >= 40_000 for one in ids)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "processes"),
    [
        pytest.param(
            r'sandbox.run("import os\nos.fork() or os.setsid()\nwhile True: pass", timeout_s=60)', 2, id="run"
        ),
        pytest.param("stand(sandbox)", 1, id="stand"),
    ],
)
def test_everything_ends_when_the_grader_is_killed(act: str, processes: int) -> None:
    grader = f"""
import asyncio, os
from wfdsl.grading.sandbox import Sandbox
from wfdsl.grading.sandbox.isolation import private_id
async def stand(sandbox):
    await sandbox.warm_up()
    await asyncio.sleep(60)
async def main():
    sandbox = Sandbox(slots=1)
    await sandbox.probe()
    print(os.getpid(), private_id(0), flush=True)
    await {act}
asyncio.run(main())
"""
    expected = processes if os.geteuid() == 0 else 0
    with subprocess.Popen([sys.executable, "-c", grader], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        _, private = process.stdout.readline().split()
        before = _wait_for(private, at_least=expected)
        process.send_signal(signal.SIGKILL)

    after = _wait_for(private, at_most=0)

    assert len(before) >= expected
    assert after == []


def _wait_for(private: str, *, at_least: int = 0, at_most: int = 1 << 20) -> list[str]:
    found: list[str] = []
    for _ in range(200):
        found = [one for one in Path("/proc").glob("[0-9]*") if _runs_as(one, private)]  # type: ignore[misc]
        if at_least <= len(found) <= at_most:
            break
        time.sleep(0.05)
    return found


def _runs_as(folder: Path, private: str) -> bool:
    try:
        status = (folder / "status").read_text("utf-8")
    except OSError:
        return False
    return f"Uid:\t{private}\t" in status and "State:\tZ" not in status
