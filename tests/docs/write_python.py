"""The index of the Python interface, from the source: each public name with the first sentence of its docstring."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from importlib import import_module, util
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef
_SENTENCE = re.compile(r".*?\.(?=\s|$)")


def public_names() -> str:
    """The names of `wfdsl`: functions first, then classes."""
    return _index("wfdsl")


def testing_names() -> str:
    """The names of `wfdsl.testing`."""
    return _index("wfdsl.testing")


def rl_names() -> str:
    """The names of `wfdsl_rl`."""
    return _index("wfdsl_rl")


def public_types(package: str) -> dict[str, type]:
    """The classes among the public names of a package."""
    values = {name: getattr(import_module(home), name) for name, home in _homes(package).items()}
    return {name: value for name, value in values.items() if isinstance(value, type)}


_HEAD = ["| function | what it does |", "|---|---|"]
_TYPES_HEAD = ["| type | what it is | fields and methods |", "|---|---|---|"]


def _index(package: str) -> str:
    """The names of a package in alphabetical order: functions, then classes and names of types."""
    functions, types = [], []
    for name, home in sorted(_homes(package).items(), key=lambda item: item[0].lower()):
        node = _definition(home, name)
        if isinstance(node, ast.AnnAssign):
            types.append(_alias(name, home, node))
        elif isinstance(node, ast.ClassDef):
            types.append(_class(node))
        else:
            functions.append(_function(node))
    return "\n".join([*_HEAD, *functions, "", *_TYPES_HEAD, *types] if types else [*_HEAD, *functions])


def _homes(package: str) -> dict[str, str]:
    module = import_module(package)
    homes: dict[str, str] = module._HOMES
    root = package.partition(".")[0]
    return {name: home if home.startswith(f"{root}.") else f"{root}.{home}" for name, home in homes.items()}


@cache
def _module(home: str) -> ast.Module:
    spec = util.find_spec(home)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text("utf-8"))


def _definition(home: str, name: str) -> Definition | ast.AnnAssign:
    value = getattr(import_module(home), name)
    home = value.__module__ if isinstance(value, type) or inspect.isfunction(value) else home
    for node in _module(home).body:
        if isinstance(node, Definition) and node.name == name:
            return _with_plain_defaults(node, home)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            return node
    raise LookupError(f"{home} does not define {name}")


def _class_definition(kind: type) -> ast.ClassDef:
    node = _definition(kind.__module__, kind.__name__)
    assert isinstance(node, ast.ClassDef)
    return node


def _with_plain_defaults(node: Definition, home: str) -> Definition:
    """Defaults that are constants of the module, as their values."""

    class Values(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            value = getattr(import_module(home), name.id, None)
            return ast.Constant(value) if isinstance(value, int | float) else name

    if not isinstance(node, ast.ClassDef):
        node.args.defaults = [Values().visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [default and Values().visit(default) for default in node.args.kw_defaults]
    return node


def _function(node: Function) -> str:
    word = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return _row(f"`{word}{node.name}({', '.join(_arguments(node))}){result}`", first_sentence(ast.get_docstring(node)))


def _alias(name: str, home: str, node: ast.AnnAssign) -> str:
    """The name of a type, with the text after its definition."""
    [doc] = [after for before, after in pairwise(_module(home).body) if before is node]
    assert isinstance(doc, ast.Expr), f"{home}.{name} has no docstring"
    return _row(
        f"`{name}`", first_sentence(str(ast.literal_eval(doc.value))), f"`{ast.unparse(node.value or node.target)}`"
    )


def _class(node: ast.ClassDef) -> str:
    members = ", ".join(f"`{member}`" for member in (*_fields(node), *_methods(node)))
    return _row(f"`{node.name}`", first_sentence(ast.get_docstring(node)), members)


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for statement, _ in _documented(node):
        name = ast.unparse(statement.target)
        if not name.startswith("_") and name != "model_config":
            yield name


def _methods(node: ast.ClassDef) -> Iterator[str]:
    for method in node.body:
        if not isinstance(method, Function) or (method.name.startswith("_") and method.name != "__call__"):
            continue
        kinds = {ast.unparse(decorator) for decorator in method.decorator_list}
        if "property" in kinds or "cached_property" in kinds:
            yield method.name
        elif not any("validator" in kind for kind in kinds):
            yield f"{method.name}()"


def docstrings_of_fields(kind: type) -> dict[str, str]:
    """The fields that a class itself has, each with its docstring."""
    return {ast.unparse(statement.target): doc for statement, doc in _documented(_class_definition(kind))}


def _documented(node: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign, str]]:
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = after.value.value if _is_text(after) else ""  # type: ignore[union-attr]
            yield statement, _one_line(f"{_help(statement.value)} {text}")


def _help(value: ast.expr | None) -> str:
    """The help of an option of a table; empty if the value is not an option."""
    if not isinstance(value, ast.Call) or ast.unparse(value.func) != "option":
        return ""
    found = value.args[1] if len(value.args) > 1 else next(each.value for each in value.keywords if each.arg == "help")
    text = str(ast.literal_eval(found))
    return f"{text[0].upper()}{text[1:]}."


def _is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _arguments(node: Function) -> list[str]:
    """The parameters one by one, without their types."""
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    found = [_argument(argument, default) for argument, default in zip(plain, defaults, strict=True)]
    if arguments.vararg:
        found.append(f"*{_argument(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        found.append("*")
    found += [
        _argument(argument, default)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return [*found, f"**{_argument(arguments.kwarg, None)}"] if arguments.kwarg else found


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    return f"{argument.arg}={ast.unparse(default)}" if default else argument.arg


def first_sentence(text: str | None) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = _one_line((text or "").partition("\n\n")[0])
    found = _SENTENCE.match(paragraph)
    return found[0] if found else paragraph


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _one_line(text: str) -> str:
    return " ".join(text.split())
