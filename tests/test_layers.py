"""Who may import whom: down the layers only, heavy packages only where they belong, and none of them at start-up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wfdsl
from tests.imports import Import, Package, below, foreign, loaded_by, strays

SOURCES = Path(wfdsl.__file__).parent

LAYERS = [
    ["__main__"],
    ["cli"],
    ["server", "mcp"],
    ["viewer"],
    ["evaluation"],
    ["grading"],
    ["tasks"],
    ["testing", "experiment", "render.run_page"],
    ["render.runs"],
    ["conductor"],
    ["interpreter"],
    ["api"],
    ["render"],
    ["graph", "workers"],
    ["language"],
    ["settings", "protocols"],
    ["files", "installation", "own_code"],
    ["errors", "lazy", "render.notebook", "_version"],
]
"""From the top down: every import, for types and inside functions too, stays in its layer or points down."""

LATE = {
    ("api", "language.completion"): "workflow files need no completions",
    ("api", "language.file_expansion"): "completions need no workflow files",
    ("api", "language.file_printer"): "completions need no workflow files",
    ("api", "language.file_reader"): "completions need no workflow files",
    ("experiment", "workers.pool"): "flags are made of the tables, without a pool",
    ("language.file_reader", "language.completion_scanner"): "only a file with errors may be a completion",
    ("render.pictures", "render.html"): "only pages need Markdown and Pygments",
    ("render.pictures", "render.mermaid"): "each format imports what it needs",
    ("render.pictures", "render.svg"): "each format imports what it needs",
    ("render.pictures", "render.terminal"): "each format imports what it needs",
}
"""Imports inside functions, with the reason. Commands import inside functions as a rule, for the sake of start-up."""

HOMES = {
    "anthropic": ["workers.anthropic_api"],
    "argcomplete": ["cli.options"],
    "cairosvg": ["render.pictures"],
    "datasets": ["tasks.rows"],
    "genai_prices": ["workers.list_prices"],
    "httpx2": ["workers."],
    "hypothesis": ["testing."],
    "jinja2": ["render.html", "viewer.page"],
    "lark": ["language.", "grading.statements"],
    "markupsafe": ["render.html", "viewer."],
    "mcp": ["mcp."],
    "mcp_types": ["mcp."],
    "latex2mathml": ["render.markup"],
    "markdown_it": ["render.markup"],
    "latex2sympy2_extended": ["grading.math_worker"],
    "matplotlib": ["evaluation.report"],
    "llguidance": ["workers.constrained_decoding"],
    "networkx": ["graph"],
    "numpy": ["evaluation.baselines."],
    "openai": ["workers.openai_api"],
    "opentelemetry": ["interpreter.telemetry"],
    "platformdirs": ["interpreter.journal_file"],
    "prometheus_client": ["server.metrics"],
    "pyarrow": ["tasks."],
    "pydantic": [
        "evaluation.",
        "interpreter.record",
        "mcp.",
        "server.",
        "settings",
        "tasks.",
        "workers.",
    ],
    "pydantic_core": ["interpreter.record", "server."],
    "pygments": ["render.lexer", "render.markup"],
    "ray": ["evaluation.ray_engine"],
    "resvg_py": ["render.pictures"],
    "rich": ["render.", "cli."],
    "starlette": ["cli.view", "server.", "viewer."],
    "sympy": ["grading.math_worker"],
    "torch": [
        "evaluation.baselines.routers",
        "workers.constrained_decoding",
        "workers.transformers_local",
    ],
    "transformers": ["workers.constrained_decoding", "workers.transformers_local"],
    "typing_extensions": ["protocols"],
    "uvicorn": ["server."],
    "xllamacpp": ["workers.local_server"],
}
"""Where a package of others may be imported; a dot at the end stands for everything below."""

HEAVY = [
    "anthropic", "asyncio", "datasets", "hashlib", "httpx2", "hypothesis", "jinja2", "logging", "matplotlib",
    "networkx", "numpy", "openai", "pyarrow", "pydantic", "rich", "shutil", "starlette", "sympy", "torch",
    "transformers", "uvicorn",
]  # fmt: skip
LIGHT = [
    "--version", "--help", "check --help", "check good.txt later.txt", "check good.txt --format json", "check some.wf",
    "fmt good.txt some.wf", "check --explain dead-step", "show some.wf", "show some.wf -o some.svg", "data --help",
]  # fmt: skip
"""Commands that load nothing heavy."""

PACKAGE = Package(SOURCES, LAYERS)
INSIDE = "grading.sandbox.inside."
"""Programs that run alone, in the sandbox."""


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    return [found for found in PACKAGE.imports if not found.importer.startswith(INSIDE)]


@pytest.fixture(scope="module")
def own(imports: list[Import]) -> list[Import]:
    return below(imports, "wfdsl")


def test_imports_point_down() -> None:
    assert PACKAGE.upward() == []


def test_no_modules_import_each_other() -> None:
    assert PACKAGE.circles() == []


def test_the_package_itself_is_imported_by_none_of_its_modules(imports: list[Import]) -> None:
    assert [found for found in imports if found.imported == "wfdsl" and found.importer] == []


def test_the_interpreter_knows_workers_only_as_a_protocol(own: list[Import]) -> None:
    known = {found.imported for found in own if found.importer.startswith("interpreter")}

    assert not [name for name in known if name.startswith("workers.")]


def test_pictures_of_workflows_need_no_runs(own: list[Import]) -> None:
    """So `wfdsl show` starts as fast as `check`."""
    drawing = [found for found in own if found.importer.startswith("render.")]
    of_runs = {"render.runs", "render.run_page"}
    rooms = {found.imported.partition(".")[0] for found in drawing if found.importer not in of_runs}

    assert rooms & {"api", "conductor", "interpreter", "workers"} == set()
    assert {found.imported for found in drawing if found.importer not in of_runs} & of_runs == set()


def test_every_import_inside_a_function_has_a_reason(own: list[Import]) -> None:
    late = {(found.importer, found.imported) for found in own if found.late and not found.importer.startswith("cli.")}

    assert late - LATE.keys() == set()
    assert LATE.keys() - late == set(), "these are no more: take them out of the list"


def test_packages_of_others_are_imported_only_where_they_belong(imports: list[Import]) -> None:
    assert strays(foreign(imports, "wfdsl"), HOMES) == []


@pytest.fixture(scope="module")
def grammars_in_the_cache() -> None:
    """Lark, which is needed only once, imports what nothing else needs."""
    warm_up = "from wfdsl.api import analyze; analyze(''); analyze('', form='wf')"
    subprocess.run([sys.executable, "-c", warm_up], timeout=60, check=True)


@pytest.mark.parametrize(
    "statement",
    [
        "import wfdsl",
        "import wfdsl; wfdsl.analyze('')",
        "import wfdsl.graph, wfdsl.render.svg",
        *(f"from wfdsl.cli.main import main; main({line.split()})" for line in LIGHT),
    ],
)
@pytest.mark.usefixtures("grammars_in_the_cache")
def test_start_up_loads_nothing_heavy(tmp_path: Path, statement: str) -> None:
    lists = 'model_id = [0, 1]\nsubtasks = ["a", "b"]\naccess_list = [[], [0]]\n'
    (tmp_path / "good.txt").write_text(lists)
    (tmp_path / "later.txt").write_text(lists.replace("[0]]", "[1]]"))
    (tmp_path / "some.wf").write_text('step solve by 0: "Solve it."\n')

    assert loaded_by(statement, HEAVY, tmp_path) == []


def test_help_loads_no_large_module_of_python(tmp_path: Path) -> None:
    assert loaded_by("from wfdsl.cli.main import main; main(['--help'])", ["inspect", "pathlib"], tmp_path) == []


def test_no_module_is_named_like_a_public_name() -> None:
    modules = {PACKAGE.module_name(path) for path in PACKAGE.files()} - {""}

    assert {name for name in modules if "." not in name} & set(wfdsl.__all__) == set()


CATCH_ALL = {
    "grading/grade.py": "a user's grader may raise anything, and so may ours on a model's text: the answer is unjudged",
    "grading/math_worker.py": "sympy raises anything on texts that models wrote: the answer is unjudged",
    "grading/sandbox/inside/candidate.py": "the program that is judged may raise anything",
    "grading/sandbox/inside/checker.py": "a checker may raise anything: that is its verdict",
    "interpreter/events.py": "what a user's listener raises is the outside world",
    "interpreter/journal_file.py": "an exception of one job is handed to who asked for it, and ends no other job",
    "own_code.py": "what a user's file raises as it is imported is a mistake in the file",
    "render/markup.py": "latex2mathml raises anything on what models write: the formula is shown as it was written",
    "tasks/code_formats.py": "bytes that are no pickle raise anything",
    "tasks/rows.py": "the client of the hub raises exceptions of its own",
    "workers/abilities.py": "a provider of another package may raise anything: that worker has failed the check",
    "workers/function.py": "what a user's function raises is the outside world",
}
"""Files that run what others wrote, with the reason."""


def test_files_are_short_and_finished() -> None:
    assert PACKAGE.unfinished(CATCH_ALL) == []


def test_the_checks_see_what_they_look_for() -> None:
    found = {(found.imported, found.late) for found in PACKAGE.imports if found.importer == "language.workflow"}

    assert ("wfdsl.language.check", False) in found
    assert ("wfdsl.language.check", True) not in found
    assert PACKAGE.layer_of("protocols") > PACKAGE.layer_of("workers.openai_api")
    assert PACKAGE.layer_of("cli.main") < PACKAGE.layer_of("api") < PACKAGE.layer_of("language.source")
