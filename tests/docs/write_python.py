"""The index of the Python interface, from the source: each public name with the first sentence of its docstring."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from wfdsl.lazy import homes_of

from .pages import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def _index(package: str) -> str:
    """The names of a package in alphabetical order: functions, then classes and names of types."""
    functions, types = [], []
    for name, home in sorted(_homes(package).items(), key=lambda item: item[0].lower()):
        value = getattr(import_module(home), name)
        if isinstance(value, type):
            types.append(_class(value))
        elif inspect.isfunction(value):
            functions.append(_function(name, value))
        else:
            types.append(_alias(name, home))
    found = table(["function", "what it does"], functions)
    return "\n\n".join([found, table(["type", "what it is", "fields and methods"], types)] if types else [found])


def _homes(package: str) -> dict[str, str]:
    return {name: home for name, home in homes_of(str(import_module(package).__file__)).items() if name[0] != "_"}


def _function(name: str, value: Callable[..., Any]) -> list[str]:
    """A function with its parameters, without their types."""
    word = "await " if inspect.iscoroutinefunction(value) else ""
    signature = inspect.signature(value)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    call = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    return _row(f"`{word}{name}{call} -> {signature.return_annotation}`", first_sentence(value.__doc__))


def _alias(name: str, home: str) -> list[str]:
    """The name of a type, with the text after its definition."""
    for node, doc in pairwise(ast.parse(inspect.getsource(import_module(home))).body):
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == name:
            return _row(f"`{name}`", first_sentence(_text(doc)), f"`{ast.unparse(node.value)}`")
    raise LookupError(f"{home} does not define {name}")


def _class(kind: type) -> list[str]:
    members = ", ".join(f"`{member}`" for member in (*_fields(kind), *_methods(kind)))
    return _row(f"`{kind.__name__}`", first_sentence(kind.__doc__), members)


def _fields(kind: type) -> list[str]:
    return [name for name in docstrings_of_fields(kind) if not name.startswith("_") and name != "model_config"]


def _methods(kind: type) -> Iterator[str]:
    for method in _body(kind):
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if method.name.startswith("_") and method.name != "__call__":
            continue
        kinds = {ast.unparse(decorator) for decorator in method.decorator_list}
        if "property" in kinds or "cached_property" in kinds:
            yield method.name
        elif not any("validator" in kind for kind in kinds):
            yield f"{method.name}()"


def _body(kind: type) -> list[ast.stmt]:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    return node.body


def docstrings_of_fields(kind: type) -> dict[str, str]:
    """The fields that a class itself has, each with its docstring."""
    return {
        ast.unparse(field.target): " ".join(f"{_help(field.value)} {_text(after)}".split())
        for field, after in pairwise([*_body(kind), ast.Pass()])
        if isinstance(field, ast.AnnAssign)
    }


def _help(value: ast.expr | None) -> str:
    """The help of an option of a table; empty if the value is not an option."""
    if not isinstance(value, ast.Call) or ast.unparse(value.func) != "option":
        return ""
    found = value.args[1] if len(value.args) > 1 else next(each.value for each in value.keywords if each.arg == "help")
    text = str(ast.literal_eval(found))
    return f"{text[0].upper()}{text[1:]}."


def _text(node: ast.stmt) -> str:
    """What a statement says that is only a text."""
    found = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else ""
    return found if isinstance(found, str) else ""


def first_sentence(text: str | None) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join((text or "").partition("\n\n")[0].split())
    found = _SENTENCE.match(paragraph)
    return found[0] if found else paragraph


def _row(*cells: str) -> list[str]:
    return [cell.replace("|", "\\|") for cell in cells]
