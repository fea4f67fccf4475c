"""Check a release before it is made: build the wheel and the sdist, install the wheel outside the clone in a new
environment of each Python, and run the README's commands there: `python -m tests.release_check PYTHON...`.

Commands that need a key are run with `--dry-run`; `make` needs a clone and is left out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^(?P<notes>(?:<!-- [^\n]* -->\n)*)```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
EXTRAS = "eval"


def run(command: list[str], folder: Path, allowed: tuple[int, ...] = (0,)) -> str:
    """What a command prints, of which nothing of the clone is visible."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    home = {"WFDSL_HOME": str(folder / "home"), "COLUMNS": "120"}
    done = subprocess.run(
        command, cwd=folder, env=kept | home, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode not in allowed:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def readme_runs(python: Path, folder: Path) -> int:
    """Run every block of the README that needs neither a clone nor a key; the number of commands that were run."""
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
    count = 0
    for block in BLOCK.finditer((ROOT / "README.md").read_text("utf-8")):
        notes, kind, body = block["notes"], block["kind"], block["body"]
        if name := re.search(r"<!-- file: (\S+) -->", notes):
            (folder / name[1]).write_text(body)
        if kind == "python":
            code = re.sub(r"^(.+?)  # -> (.+)$", r"assert repr(\1) == repr(\2)", body, flags=re.MULTILINE)
            run([str(python), "-c", code], folder)
            count += 1
        if kind == "console":
            for part in body.split("$ ")[1:]:
                command, _, expected = part.partition("\n")
                words = shlex.split(command, comments=True)
                if words[0] != "wfdsl":
                    continue
                needs_key = "not run" in notes and "--dry-run" not in words
                words[0] = str(python.parent / "wfdsl")
                said = run([*words, "--dry-run"] if needs_key else words, folder, (0, 1) if "check" in words else (0,))
                if expected.strip() and "..." not in expected and said.split() != expected.split():
                    sys.exit(f"{command} prints something else than the README says:\n{said}")
                if needs_key and "$" not in said:
                    sys.exit(f"{command} has no bound in dollars:\n{said}")
                count += 1
    return count


def main() -> None:
    """Build once, then install and run for each Python that is named."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        run([sys.executable, "-m", "hatchling", "build", "-d", str(place / "dist")], ROOT)
        (wheel,) = (place / "dist").glob("*.whl")
        (sdist,) = (place / "dist").glob("*.tar.gz")
        print(f"built {wheel.name} and {sdist.name}")
        for number, python in enumerate(sys.argv[1:] or [sys.executable]):
            folder = place / f"python-{number}"
            folder.mkdir()
            run([python, "-m", "venv", str(folder / "venv")], folder)
            inside = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
            constraints = ["--constraint", str(ROOT / "constraints.txt")]
            install = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints]
            run([*install, f"{wheel}[{EXTRAS}]"], folder)
            version = run([str(inside), "-c", "import platform; print(platform.python_version())"], folder).strip()
            print(f"Python {version}: {readme_runs(inside, folder)} commands of the README run from the wheel")


if __name__ == "__main__":
    main()
