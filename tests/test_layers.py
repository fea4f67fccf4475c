"""Who may import whom: down the layers only, heavy packages only where they belong, and none of them at start-up."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import wfdsl

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(wfdsl.__file__).parent
FILES = sorted(SOURCES.rglob("*.py"))

LAYERS = [
    ["__main__"],
    ["cli"],
    ["testing"],
    ["survey"],
    ["experiment.conducting"],
    ["conductor"],
    ["api"],
    ["workers"],
    ["interpreter"],
    ["render"],
    ["dag"],
    ["topology"],
    ["syntax"],
    ["check"],
    ["workflow"],
    ["experiment"],
    ["pool_file"],
    ["pool"],
    ["toml_file"],
    ["workers.protocol"],
    ["tree"],
    ["diagnostics"],
    ["errors"],
    ["redaction"],
    ["source"],
    ["_version"],
]
"""From the top down. A package stands for its modules, and what has a row of its own does not count to its package."""

LATE = {
    ("api", "syntax.expand"): "completions need no workflow files",
    ("api", "syntax.print_file"): "completions need no workflow files",
    ("api", "syntax.workflow_file"): "completions need no workflow files",
    ("errors", "diagnostics.render"): "drawing is needed only once there is an error",
    ("interpreter.record", "interpreter.record_json"): "pydantic is needed only to read and write records",
    ("interpreter.running", "interpreter.journal"): "most runs have no journal",
    ("interpreter.running", "interpreter.journal_reading"): "most runs have no journal",
    ("interpreter.running", "interpreter.journaling"): "most runs have no journal",
    ("pool", "pool_file"): "pools made in Python need no TOML",
    ("pool", "workers.bench"): "a pool builds its workers when they are used",
    ("pool", "workers.function"): "a pool builds its workers when they are used",
    ("pool", "workers.registry"): "a pool builds its workers when they are used",
    ("pool", "workers.text_policy"): "a pool builds its workers when they are used",
    ("pool_file", "workers.registry"): "plug-ins are looked up when a name asks for them",
    ("syntax.tables", "syntax.lark_grammar"): "importing Lark is what the cache of tables saves",
    ("workflow", "check"): "the checker builds workflows",
    ("workflow", "render.svg"): "only notebooks draw",
}
"""Imports inside functions, with the reason. Commands import inside functions as a rule, for the sake of start-up."""

HOMES = {
    "anthropic": ["workers."],
    "httpx2": ["workers."],
    "hypothesis": ["testing."],
    "lark": ["syntax."],
    "llguidance": ["workers.constrained_decoding"],
    "networkx": ["dag", "render."],
    "openai": ["workers."],
    "opentelemetry": ["interpreter.telemetry"],
    "platformdirs": ["syntax.tables", "interpreter.journal_file"],
    "pydantic": ["conductor.model", "experiment.", "interpreter.record_json", "pool", "pool_file", "toml_file"],
    "rich": ["render.", "cli."],
    "torch": ["workers.constrained_decoding", "workers.transformers_local"],
    "transformers": ["workers.constrained_decoding", "workers.transformers_local"],
    "xllamacpp": ["workers.local_server"],
}
"""Where a package of others may be imported; a dot at the end stands for everything below."""

HEAVY = [
    "anthropic",
    "asyncio",
    "httpx",
    "httpx2",
    "hypothesis",
    "logging",
    "networkx",
    "numpy",
    "openai",
    "pydantic",
    "rich",
    "torch",
    "transformers",
]

LONG_TABLES = {"diagnostics/codes.py": 600}
"""Files that are one table, row after row, with the lines that they may have."""


class Import(NamedTuple):
    importer: str
    imported: str
    line: int
    late: bool
    """Whether it stands inside a function."""


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__").replace("__init__", "")


def imports_of(path: Path) -> list[Import]:
    return list(_imports(ast.parse(path.read_text("utf-8")), module_name(path), late=False))


def _imports(node: ast.AST, importer: str, *, late: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (Import(importer, alias.name, child.lineno, late) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{importer} has a relative import in line {child.lineno}"
            yield Import(importer, child.module or "", child.lineno, late)
            for alias in child.names:
                if is_module(f"{child.module}.{alias.name}"):
                    yield Import(importer, f"{child.module}.{alias.name}", child.lineno, late)
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _imports(child, importer, late=late or inside)


def is_module(name: str) -> bool:
    package, _, inside = name.partition(".")
    path = SOURCES / inside.replace(".", "/")
    return package == "wfdsl" and bool(inside) and (path.with_suffix(".py").is_file() or path.is_dir())


def layer_of(module: str) -> int:
    """The number of a module's layer, from 0 at the top; the longest row that fits it counts."""
    fitting = [
        (len(row), number)
        for number, rows in enumerate(LAYERS)
        for row in rows
        if module == row or module.startswith(f"{row}.")
    ]
    assert fitting, f"give {module} a layer in {Path(__file__).name}"
    return max(fitting)[1]


ALL_IMPORTS = [found for path in FILES for found in imports_of(path)]
OWN = [
    found._replace(imported=found.imported.removeprefix("wfdsl."))
    for found in ALL_IMPORTS
    if found.imported.partition(".")[0] == "wfdsl" and found.imported != "wfdsl"
]
FOREIGN = [
    found._replace(imported=found.imported.partition(".")[0])
    for found in ALL_IMPORTS
    if found.imported.partition(".")[0] not in sys.stdlib_module_names | {"wfdsl"}
]


def test_imports_point_down() -> None:
    upward = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in OWN
        if found.importer
        and not found.late
        and layer_of(found.importer) > layer_of(found.imported)
        and found.imported != "workers"
    ]

    assert upward == []


def test_the_package_itself_is_imported_by_none_of_its_modules() -> None:
    assert [found for found in ALL_IMPORTS if found.imported == "wfdsl" and found.importer] == []


def test_the_interpreter_knows_workers_only_as_a_protocol() -> None:
    known = {
        found.imported
        for found in OWN
        if found.importer.startswith("interpreter") and found.imported.startswith("workers.")
    }

    assert known == {"workers.protocol"}


def test_every_import_inside_a_function_has_a_reason() -> None:
    late = {(found.importer, found.imported) for found in OWN if found.late and not found.importer.startswith("cli.")}

    assert late - LATE.keys() == set()
    assert LATE.keys() - late == set(), "these are no more: take them out of the list"


@pytest.mark.parametrize("package", sorted({found.imported for found in FOREIGN}))
def test_packages_of_others_are_imported_only_where_they_belong(package: str) -> None:
    homes = HOMES.get(package, [])

    strays = [
        f"{found.importer}:{found.line}"
        for found in FOREIGN
        if found.imported == package
        and not any(found.importer == home or (home[-1] == "." and found.importer.startswith(home)) for home in homes)
    ]

    assert strays == []


@pytest.fixture(scope="module")
def grammars_in_the_cache() -> None:
    """Lark, which is needed only once, imports what nothing else needs."""
    warm_up = "from wfdsl.api import analyze, analyze_file_text; analyze(''); analyze_file_text('')"
    subprocess.run([sys.executable, "-c", warm_up], timeout=60, check=True)


@pytest.mark.parametrize(
    "statement",
    [
        "import wfdsl",
        "import wfdsl; wfdsl.analyze('')",
        "from wfdsl.cli.main import main; main(['--version'])",
        "from wfdsl.cli.main import main; main(['--help'])",
        "from wfdsl.cli.main import main; main(['check', '--help'])",
        "from wfdsl.cli.main import main; main(['check', 'good.txt', 'later.txt'])",
        "from wfdsl.cli.main import main; main(['check', 'good.txt', '--format', 'json'])",
        "from wfdsl.cli.main import main; main(['check', 'some.wf'])",
        "from wfdsl.cli.main import main; main(['fmt', 'good.txt', 'some.wf'])",
        "from wfdsl.cli.main import main; main(['explain', 'dead-step'])",
    ],
)
@pytest.mark.usefixtures("grammars_in_the_cache")
def test_start_up_loads_nothing_heavy(tmp_path: Path, statement: str) -> None:
    lists = 'model_id = [0, 1]\nsubtasks = ["a", "b"]\naccess_list = [[], [0]]\n'
    (tmp_path / "good.txt").write_text(lists)
    (tmp_path / "later.txt").write_text(lists.replace("[0]]", "[1]]"))
    (tmp_path / "some.wf").write_text('step solve by 0: "Solve it."\n')
    asked = f"""
import sys
try:
    {statement}
except SystemExit:
    pass
import json
print(json.dumps(sorted(set({HEAVY!r}) & sys.modules.keys())))
"""

    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True
    )

    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_no_module_is_named_like_a_public_name() -> None:
    modules = {module_name(path) for path in FILES} - {""}

    assert {name.rpartition(".")[2] for name in modules if not name.startswith("cli.")} & set(wfdsl.__all__) == set()


CATCH_ALL = {"workers/function.py"}  # what a user's function raises is the outside world


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty_words = {"utils", "util", "helpers", "base", "common", "manager", "misc", "core"}

    assert [path for path in FILES if {path.stem, path.parent.name} & empty_words] == []


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_file_is_short_and_finished(path: Path) -> None:
    text = path.read_text("utf-8")
    longest = LONG_TABLES.get(path.relative_to(SOURCES).as_posix(), 500)

    assert text.count("\n") <= longest
    assert re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b", text) == []
    if path.relative_to(SOURCES).as_posix() not in CATCH_ALL:
        assert re.findall(r"except\s*:|except\s*\(?[^:\n]*\bException\b", text) == []
    assert ast.get_docstring(ast.parse(text)), "say in the first line what the module holds"


def test_the_checks_see_what_they_look_for(tmp_path: Path) -> None:
    path = SOURCES / "check.py"

    found = {(found.imported, found.late) for found in imports_of(path)}

    assert ("wfdsl.workflow", False) in found
    assert ("collections.abc", False) not in found
    assert layer_of("workers.protocol") > layer_of("workers.openai_api")
    assert layer_of("cli.main") < layer_of("api") < layer_of("source")
