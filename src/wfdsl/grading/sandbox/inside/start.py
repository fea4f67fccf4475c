"""The first code that runs inside: limits, then the message that it is ready, then a whole program or a role.

This text needs no import but of built-in modules, because every program waits for it.
"""

from __future__ import annotations

import posix
import resource
import sys

from wfdsl.grading.sandbox.inside import READY


def limit(bounds: dict[str, int]) -> None:
    """Limit this process and all that it starts, never to more than was allowed before."""
    for name, most in bounds.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        allowed = resource.getrlimit(kind)[1]
        bound = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (bound, bound))


def read_exactly(handle: int, count: int) -> bytes:
    """This many bytes. Unbuffered: what follows is the program's own input."""
    parts = []
    while count:
        part = posix.read(handle, min(count, 1 << 20))
        if not part:
            raise EOFError("the other side has closed")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read_frame(handle: int) -> bytes:
    """A length of 12 digits, and as many bytes."""
    return read_exactly(handle, int(read_exactly(handle, 12)))


def write_frame(handle: int, payload: bytes) -> None:
    """The same, outwards."""
    left = memoryview(b"%012d" % len(payload) + payload)
    while left:
        left = left[posix.write(handle, left) :]


def quiet_channels() -> tuple[int, int]:
    """Be ready; numbers of our own channel: what a program prints goes nowhere from now on, and it reads nothing."""
    ready()
    inwards, outwards = posix.dup(0), posix.dup(1)
    nothing = posix.open("/dev/null", posix.O_RDWR)
    for number in range(3):
        posix.dup2(nothing, number)
    posix.close(nothing)
    return inwards, outwards


def ready() -> None:
    """Add what `site` would, say that it is ready, and wait for the limit of processor time, which is sent next."""
    import builtins  # noqa: PLC0415  (not left to the program as a name)

    sys.set_int_max_str_digits(0)  # contests ask for long numbers; time is limited anyway
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]
    posix.write(1, READY)
    limit({"CPU": int(read_exactly(0, 12))})


def run_program() -> None:
    """Run a whole program as `python program.py` would: its source comes first on standard input, then its input."""
    import builtins  # noqa: PLC0415  (none of these names is left to the program)
    import sys  # noqa: PLC0415

    source = read_frame(0)
    names = sys.modules["__main__"].__dict__
    code = compile(source, "program.py", "exec", dont_inherit=True)
    names.clear()
    names.update(__name__="__main__", __builtins__=builtins, __file__="program.py")
    sys.argv[:] = ["program.py"]
    exec(code, names)
