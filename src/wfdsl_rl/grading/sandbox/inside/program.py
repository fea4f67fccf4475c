"""Runs a whole program: its source comes first on the standard input, its own input after it."""
# What stands above it in the sandbox: start.py.

from __future__ import annotations

from wfdsl_rl.grading.sandbox.inside.start import read_frame


def run_program() -> None:
    """As `python program.py` would, in the module `__main__`."""
    import builtins  # noqa: PLC0415  (none of these names is left to the program)
    import sys  # noqa: PLC0415

    source = read_frame(0)
    names = sys.modules["__main__"].__dict__
    code = compile(source, "program.py", "exec", dont_inherit=True)
    names.clear()
    names.update(__name__="__main__", __builtins__=builtins, __file__="program.py")
    sys.argv[:] = ["program.py"]
    exec(code, names)
