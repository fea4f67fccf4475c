"""Who may import whom in `wfdsl_rl`, what it may need, and that `wfdsl` never needs it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import wfdsl
import wfdsl_rl
from tests.imports import Package, foreign, loaded_by, strays

SOURCES = Path(wfdsl_rl.__file__).parent

LAYERS = [
    ["cli"],
    ["engines"],
    ["gym", "gym"],
    ["training"],
    ["reward"],
    ["processes", "scoring"],
]
"""From the top down: every import, for types and inside functions too, stays in its layer or points down. The gym is
used by name only, through entry points."""

HOMES = {
    "accelerate": ["processes"],
    "anyio": ["reward", "training.asynchronous"],
    "datasets": ["training.stages", "training.asynchronous"],
    "gguf": ["training.export"],
    "httpx2": ["engines.client"],
    "huggingface_hub": ["training.estimate"],
    "numpy": ["training.export", "training.asynchronous"],
    "peft": ["training.stages", "training.checkpoints"],
    "pydantic": ["engines.server", "gym.", "training."],
    "pydantic_core": ["engines.server"],
    "rich": ["cli."],
    "safetensors": ["training."],
    "starlette": ["engines.server"],
    "torch": ["processes", "training.", "gym."],
    "transformers": ["training.", "gym."],
    "trl": ["training.stages", "training.asynchronous"],
    "verifiers": ["engines.verifiers"],
}
"""Where a package of others may be imported; a dot at the end stands for everything below."""

HEAVY = [
    "datasets", "matplotlib", "networkx", "numpy", "openai", "pandas", "pyarrow", "pydantic", "rich", "sympy", "torch",
    "transformers",
]  # fmt: skip


PACKAGE = Package(SOURCES, LAYERS)


def test_imports_point_down() -> None:
    assert PACKAGE.upward() == []


def test_no_modules_import_each_other() -> None:
    assert PACKAGE.circles() == []


def test_wfdsl_never_imports_wfdsl_rl() -> None:
    importing = re.compile(r"^\s*(from|import) wfdsl_rl", re.MULTILINE)

    core = Path(wfdsl.__file__).parent.rglob("*.py")

    assert [path for path in core if importing.search(path.read_text("utf-8"))] == []


def test_packages_of_others_are_imported_only_where_they_belong() -> None:
    assert strays(foreign(PACKAGE.imports, "wfdsl", "wfdsl_rl"), HOMES) == []


@pytest.mark.parametrize(
    "statement",
    [
        "import wfdsl_rl",
        "from wfdsl.cli.main import main; main(['eval', '--help'])",
        "from wfdsl.cli.main import main; main(['serve', '--score', '--help'])",
        "from wfdsl_rl.cli.train import main; main(['--help'])",
    ],
)
def test_start_up_imports_nothing_heavy(statement: str, tmp_path: Path) -> None:
    assert loaded_by(statement, HEAVY, tmp_path) == []


# Scores a gym completion where nothing can be imported but Python's library, this package and some others.
SCORES_WITH = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if not name.startswith("_") and name.partition(".")[0] not in sys.stdlib_module_names | {allowed!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
import wfdsl
import wfdsl_rl
from wfdsl_rl.engines import client
tasks = [task for task in wfdsl.load_tasks("gym/seven", limit=20, seed=1) if task.kind in ("math", "choice")][:4]
with wfdsl_rl.Reward("gym/seven", tasks) as reward:
    lists = 'model_id = [0]\\nsubtasks = ["Solve it."]\\naccess_list = [[]]'
    scored = reward.sync([lists, "no lists"] * 4, [task.id for task in tasks for _ in range(2)])
print([each.score for each in scored])
"""


def test_a_reward_needs_the_core_package_only() -> None:
    program = SCORES_WITH.format(allowed=core_names())

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    scores = ast.literal_eval(done.stdout)
    assert scores[1::2] == [0.0] * 4
    assert set(scores[::2]) <= {0.5, 1.0}


def core_names() -> set[str]:
    """What can be imported where the package is installed without extras."""
    found: set[str] = set()
    left = ["wfdsl-conductor"]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            needed = map(Requirement, metadata.requires(name) or [])
            left += [canonicalize_name(each.name) for each in needed if each.marker is None or each.marker.evaluate()]
    modules = metadata.packages_distributions().items()
    names = {module for module, owners in modules if found & {canonicalize_name(owner) for owner in owners}}
    return {"wfdsl", "wfdsl_rl", *names}


CATCH_ALL = {
    "training/pipeline.py": "wandb has errors of its own, and what no library refuses is raised again",
}
"""Files that pass on whatever is raised, with the reason."""


def test_files_are_short_and_finished() -> None:
    assert PACKAGE.unfinished(CATCH_ALL) == []
