"""What the modules of a package import, for types and inside functions too, and the layer that each of them is in."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import networkx as nx

EMPTY_WORDS = {"utils", "util", "helpers", "base", "common", "manager", "misc", "core"}


class Import(NamedTuple):
    importer: str
    imported: str
    line: int
    late: bool
    """Whether it stands inside a function."""


@dataclass(frozen=True)
class Package:
    """The sources of a package; modules are named from its folder on."""

    sources: Path
    layers: Sequence[Sequence[str]]
    """From the top down. A package stands for its modules."""

    def files(self) -> list[Path]:
        return sorted(self.sources.rglob("*.py"))

    def module_name(self, path: Path) -> str:
        dotted = ".".join(path.relative_to(self.sources).with_suffix("").parts)
        return dotted.removesuffix(".__init__").replace("__init__", "")

    @cached_property
    def imports(self) -> list[Import]:
        """Those of all files."""
        trees = ((ast.parse(path.read_text("utf-8")), self.module_name(path)) for path in self.files())
        return [found for tree, name in trees for found in self._imports(tree, name, late=False)]

    def layer_of(self, module: str) -> int:
        """The number of a module's layer, from 0 at the top."""
        room = module.partition(".")[0]
        own = [number for number, rooms in enumerate(self.layers) if module in rooms]
        fitting = own or [number for number, rooms in enumerate(self.layers) if room in rooms]
        assert fitting, f"give {self.sources.name}.{room} a layer"
        return fitting[0]

    def upward(self) -> list[str]:
        """The imports of the package's own modules that do not point down."""
        inside = f"{self.sources.name}."
        own = [each for each in self.imports if each.importer and each.imported.startswith(inside)]
        return [
            f"{each.importer}:{each.line} imports {each.imported}"
            for each in own
            if self.layer_of(each.importer) > self.layer_of(each.imported.removeprefix(f"{self.sources.name}."))
        ]

    def circles(self) -> list[set[str]]:
        """The modules that import each other, however indirectly; a module may name the package that it is in."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        names = {f"{self.sources.name}.{self.module_name(path)}" for path in self.files()}
        for each in self.imports:
            importer = f"{self.sources.name}.{each.importer}"
            if each.imported in names and not importer.startswith(each.imported):
                graph.add_edge(importer, each.imported)
        return [circle for circle in nx.strongly_connected_components(graph) if len(circle) > 1]

    def unfinished(self, catch_all: Collection[str]) -> list[str]:
        """What speaks against a file: its name, its length, marks of open work, no docstring, or that it catches
        everything and is not in `catch_all`."""
        found = []
        for path in self.files():
            text, name = path.read_text("utf-8"), path.relative_to(self.sources).as_posix()
            catches = re.search(r"except\s*:|except\s*\(?[^:\n]*\bException\b", text) and name not in catch_all
            wrong = {
                "a name that says nothing": {path.stem, path.parent.name} & EMPTY_WORDS,
                "more than 500 lines": text.count("\n") > 500,
                "a mark of open work": re.search(r"\b(?:TODO|FIXME|XXX|HACK)\b", text),
                "catches everything": catches,
                "no docstring, which says what the module holds": not ast.get_docstring(ast.parse(text)),
            }
            found += [f"{name}: {what}" for what, is_wrong in wrong.items() if is_wrong]
        return found

    def _imports(self, node: ast.AST, importer: str, *, late: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(importer, alias.name, child.lineno, late) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{importer} has a relative import in line {child.lineno}"
                yield Import(importer, child.module or "", child.lineno, late)
                for alias in child.names:
                    if self._is_module(f"{child.module}.{alias.name}"):
                        yield Import(importer, f"{child.module}.{alias.name}", child.lineno, late)
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from self._imports(child, importer, late=late or inside)

    def _is_module(self, name: str) -> bool:
        package, _, inside = name.partition(".")
        path = self.sources / inside.replace(".", "/")
        return package == self.sources.name and bool(inside) and (path.with_suffix(".py").is_file() or path.is_dir())


def below(imports: Sequence[Import], package: str) -> list[Import]:
    """The imports of a package's modules, named from its folder on."""
    inside = f"{package}."
    return [
        each._replace(imported=each.imported.removeprefix(inside))
        for each in imports
        if each.imported.startswith(inside)
    ]


def foreign(imports: Sequence[Import], *ours: str) -> list[Import]:
    """The imports of packages of others, by the names of these."""
    tops = [each._replace(imported=each.imported.partition(".")[0]) for each in imports]
    return [each for each in tops if each.imported not in sys.stdlib_module_names | {*ours}]


def loaded_by(statement: str, names: Collection[str], folder: Path) -> list[str]:
    """Those of the modules that a program of this one statement imports."""
    program = f"""
import sys
try:
    {statement}
except SystemExit:
    pass
import json
print(json.dumps(sorted({set(names)!r} & sys.modules.keys())))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, timeout=60, check=True
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def strays(imports: Sequence[Import], homes: Mapping[str, Sequence[str]]) -> list[str]:
    """Where packages of others are imported outside their homes; a home with a dot at the end stands for all below."""
    return [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in imports
        if not any(
            found.importer == home or (home[-1] == "." and found.importer.startswith(home))
            for home in homes.get(found.imported, [])
        )
    ]
