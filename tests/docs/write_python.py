"""The reference of the Python interface, from the source: signatures, fields and docstrings of the public names."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module, util
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from wfdsl_rl import gym

if TYPE_CHECKING:
    from collections.abc import Iterator

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef
_SECTION = re.compile(r"(?P<title>Args|Raises|Source):[ ]*(?P<rest>.*)")
_LONGEST = 100  # characters of a signature on one line


def public_names() -> str:
    """The names of `wfdsl`: functions first, then classes."""
    return _reference("wfdsl")


def testing_names() -> str:
    """The names of `wfdsl.testing`."""
    return _reference("wfdsl.testing")


def rl_names() -> str:
    """The names of `wfdsl_rl`."""
    return _reference("wfdsl_rl")


def gym_names() -> str:
    """The names of `wfdsl_rl.gym`."""
    found = [_definition("wfdsl_rl.gym.world.making", name) for name in gym.__all__]
    return "\n\n".join(_function("wfdsl_rl.gym", node) for node in found if isinstance(node, Function))


def _reference(package: str) -> str:
    """The names of a package in alphabetical order: functions, then classes and names of types."""
    functions, types = [], []
    for name, home in sorted(_homes(package).items(), key=lambda item: item[0].lower()):
        node = _definition(home, name)
        if isinstance(node, ast.AnnAssign):
            types.append(_alias(package, name, home, node))
        elif isinstance(node, ast.ClassDef):
            types.append(_class(package, node, getattr(import_module(home), name)))
        else:
            functions.append(_function(package, node))
    return "\n\n".join([*functions, *types])


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


def _function(package: str, node: Function) -> str:
    shown = f"<!-- not run: a signature -->\n```python\n{_signature(node)}\n```"
    return "\n\n".join([f"## {package}.{node.name}", shown, *_paragraphs(node)])


def _alias(package: str, name: str, home: str, node: ast.AnnAssign) -> str:
    """The name of a type, with the text after its definition."""
    body = _module(home).body
    [doc] = [after for before, after in pairwise(body) if before is node]
    assert isinstance(doc, ast.Expr), f"{home}.{name} has no docstring"
    text = inspect.cleandoc(str(ast.literal_eval(doc.value)))
    parts = ast.unparse(node.value or node.target)
    value = "(\n    {}\n)".format(parts.replace(" | ", "\n    | ")) if len(parts) > _LONGEST else parts
    shown = f"<!-- not run: a type -->\n```python\n{name} = {value}\n```"
    return "\n\n".join([f"## {package}.{name}", shown, text])


def _class(package: str, node: ast.ClassDef, kind: type) -> str:
    parts = [f"## {package}.{node.name}", *_paragraphs(node)]
    base, made_by = _constructor(kind)
    if made_by is not None:
        shown = f"class {node.name}:\n{textwrap.indent(_signature(made_by), '    ')}"
        inherited = [] if base is kind else _paragraphs(_class_definition(base))
        parts += [f"<!-- not run: a signature -->\n```python\n{shown}\n```", *inherited, *_paragraphs(made_by)]
    fields = list(_fields(node, kind.__module__))
    if fields:
        parts += ["Fields are given by name."] if _takes_names(kind) else []
        parts.append("\n".join(["| field | type | default | meaning |", "|---|---|---|---|", *fields]))
    return "\n\n".join([*parts, *_methods(node)])


def _takes_names(kind: type) -> bool:
    """Whether all arguments of a class that is made of its fields are given by name."""
    if issubclass(kind, dict):
        return False
    return all(argument.kind is argument.KEYWORD_ONLY for argument in inspect.signature(kind).parameters.values())


def _constructor(kind: type) -> tuple[type, ast.FunctionDef | None]:
    """The `__init__` of a class, and the class or base that has it; none if the class is made of its fields."""
    for base in kind.__mro__:
        if not base.__module__.startswith("wfdsl") or is_dataclass(base):
            break
        for method in _class_definition(base).body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                return base, method
    return kind, None


def _fields(node: ast.ClassDef, home: str) -> Iterator[str]:
    for statement, doc in _documented(node):
        name = ast.unparse(statement.target)
        if not name.startswith("_") and name != "model_config":
            cells = (f"`{name}`", f"`{ast.unparse(statement.annotation)}`", _default(statement.value, home), doc)
            yield f"| {' | '.join(map(_cell, cells))} |"


def _default(value: ast.expr | None, home: str) -> str:
    """The default of a field, as it is written or as the value of a constant; empty if the field must be given."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("option", "field", "Field"):
        named = {keyword.arg: keyword.value for keyword in value.keywords}
        if factory := named.get("default_factory"):
            called = ast.unparse(factory)
            return "`{}`" if called.startswith(("dict", "lambda")) else f"`{called}()`"
        value = named.get("default") or next(iter(value.args), None)
    if isinstance(value, ast.Name):
        constant = getattr(import_module(home), value.id)
        made = constant if isinstance(constant, type) else type(constant)
        return f"`{constant}`" if made in (int, float) else f"`{made.__name__}()`"
    return "" if value is None else f"`{ast.unparse(value)}`".replace("MappingProxyType({})", "{}")


def docstrings_of_fields(kind: type) -> dict[str, str]:
    """The fields that a class itself has, each with its docstring."""
    return {ast.unparse(statement.target): doc for statement, doc in _documented(_class_definition(kind))}


def _documented(node: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign, str]]:
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = after.value.value if _is_text(after) else ""  # type: ignore[union-attr]
            yield statement, _one_line(f"{_help(statement.value)} {text}")


def _help(value: ast.expr | None) -> str:
    """The help of an option of a configuration class; empty if the value is not an option."""
    for keyword in value.keywords if isinstance(value, ast.Call) else []:
        if keyword.arg == "help" and isinstance(keyword.value, ast.Constant):
            text = str(keyword.value.value)
            return f"{text[0].upper()}{text[1:]}."
    return ""


def _is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _methods(node: ast.ClassDef) -> Iterator[str]:
    for method in node.body:
        if not isinstance(method, Function) or (method.name.startswith("_") and method.name != "__call__"):
            continue
        kinds = {ast.unparse(decorator) for decorator in method.decorator_list}
        if "property" in kinds or "cached_property" in kinds:
            result = f": {ast.unparse(method.returns)}" if method.returns else ""
            yield f"- `.{method.name}{result}`: {_summary(method)}"
        elif not any("validator" in kind for kind in kinds):
            owner = f"{node.name}." if "classmethod" in kinds else "."
            asynchronous = "async with " if "asynccontextmanager" in kinds else ""
            yield f"- `{asynchronous}{owner}{_call(method, skip_first=True)}`: {_summary(method)}"


def _signature(node: Function) -> str:
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    line = f"{word} {_call(node)}"
    if len(line) > _LONGEST:
        arguments = [f"    {argument},\n" for argument in _arguments(node)]
        result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        line = f"{word} {node.name}(\n{''.join(arguments)}){result}"
    return f"{line}: ..."


def _call(node: Function, *, skip_first: bool = False) -> str:
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({', '.join(_arguments(node)[1 if skip_first else 0 :])}){result}"


def _arguments(node: Function) -> list[str]:
    """The parameters one by one, as they are written."""
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
    annotation = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    equals = " = " if annotation else "="
    return f"{argument.arg}{annotation}{equals + ast.unparse(default) if default else ''}"


def _summary(node: Definition) -> str:
    return _one_line((ast.get_docstring(node) or "").partition("\n\n")[0])


def _paragraphs(node: Definition) -> Iterator[str]:
    """A docstring as Markdown: its sections as lists."""
    for paragraph in filter(None, (ast.get_docstring(node) or "").split("\n\n")):
        section = _SECTION.match(paragraph)
        if section is None:
            yield paragraph
        elif section["title"] == "Source":
            yield _one_line(paragraph)
        else:
            head, _, body = paragraph.partition("\n")
            items = re.split(r"\n(?=\S)", textwrap.dedent(body))
            yield "\n".join([f"{head}", "", *(f"- {_item(item)}" for item in items)])


def _item(item: str) -> str:
    name, colon, text = _one_line(item).partition(": ")
    return f"`{name}`{colon}{text}" if re.fullmatch(r"[\w, ]+", name) else _one_line(item)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
