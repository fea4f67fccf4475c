"""The pipeline on one page: text or file -> tree -> checked workflow -> text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from wfdsl.errors import UsageError
from wfdsl.files import read_stream
from wfdsl.language.check import (
    MAX_CHARS,
    CheckConfig,
    PoolLike,
    check,
    check_columns,
    empty_workflow,
)
from wfdsl.language.diagnostics import NOWHERE, Diagnostic, WorkflowError, in_order, once_per_place
from wfdsl.language.source import Source
from wfdsl.language.tree import WorkflowTree
from wfdsl.language.workflow import Workflow
from wfdsl.render.notebook import Drawn
from wfdsl.settings import changed

Form: TypeAlias = Literal["completion", "wf"]
_DEFAULT = CheckConfig()
_OF_FILES = CheckConfig(max_steps=None)


@dataclass(frozen=True, slots=True, repr=False)
class Checked(Drawn):
    """The result of reading a text: the workflow if there is one, and every diagnostic."""

    source: Source
    """The text and its name."""
    workflow: Workflow | None
    """None if there is an error, or if the text is a passthrough."""
    diagnostics: tuple[Diagnostic, ...]
    """In the order of the text."""
    passthrough: bool = False
    """Whether the text holds three empty lists. They are valid only after the first round."""
    tree: WorkflowTree | None = None
    """What was read, with places, names and title; None if it could not be read as steps."""

    def __repr__(self) -> str:
        found = "three empty lists" if self.passthrough else repr(self.workflow)
        codes = ", ".join(dict.fromkeys(problem.code for problem in self.diagnostics))
        return f"Checked({self.source.name}: {found}{f', {codes}' if codes else ''})"

    def _repr_svg_(self) -> str | None:
        """The picture that a notebook shows, where there is a workflow."""
        return None if self.workflow is None else Drawn._repr_svg_(self)

    def _to_draw(self) -> Workflow:
        if self.workflow is None:
            raise UsageError(f"{self.source.name} holds no valid workflow to draw; see its diagnostics")
        return self.workflow

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(found.is_error for found in self.diagnostics)

    def raise_for_errors(self) -> Checked:
        """This, if it has no error.

        Raises:
            WorkflowError: it has one.
        """
        if not self.ok:
            raise WorkflowError([found for found in self.diagnostics if found.is_error], self.source)
        return self


def analyze(
    text: str,
    config: CheckConfig | None = None,
    *,
    form: Form = "completion",
    params: Mapping[str, str | float] | None = None,
    name: str | None = None,
    **options: Any,
) -> Checked:
    """Read and check a completion, or a workflow file's text. Never raises on what a text says.

    Args:
        text: what the Conductor wrote, or the text of a workflow file, which is expanded.
        config: what it is checked against; without it, `CheckConfig()`, for a workflow file with any number of steps.
        form: "completion", or "wf" for a workflow file.
        params: values for the parameters of a workflow file, as texts or numbers.
        name: what diagnostics call the text.
        options: fields of `CheckConfig`, instead of those of `config`; names and tags are looked up in `pool`.

    Raises:
        UsageError: it is not a text, there is no such form, an option is outside its limits, a parameter that the file
            does not have, or a value of the wrong type for one.
    """
    _require_text(text)
    is_file = _is_of_files(form)
    config = changed(config or (_OF_FILES if is_file else _DEFAULT), options)
    source = Source(text, name or ("workflow.wf" if is_file else "completion"))
    if len(text) > config.max_chars:
        return Checked(source, None, (too_long(config.max_chars),))
    if is_file:
        return _analyzed_file(source, params, config)
    if params:
        raise UsageError(
            f"{source.name} is a completion, which has no parameters: leave out {', '.join(sorted(params))}"
        )
    from wfdsl.language.completion import read_completion  # noqa: PLC0415  (start-up time: files do not need it)

    find = getattr(config.pool, "find", None)
    reading = read_completion(text, config.profile, find=find, marked=config.marked)
    if reading.tree is None or not reading.complete:
        more = check_columns(reading.tree, config) if reading.tree else []
        return Checked(source, None, in_order([*reading.diagnostics, *more]))
    if reading.passthrough:
        found = reading.diagnostics if config.recursion else [*reading.diagnostics, empty_workflow(reading.tree.span)]
        return Checked(source, None, in_order(found), passthrough=True, tree=reading.tree)
    return _checked(source, reading.tree, reading.diagnostics, config)


def _analyzed_file(source: Source, params: Mapping[str, str | float] | None, config: CheckConfig) -> Checked:
    from wfdsl.language.file_expansion import expand  # noqa: PLC0415  (start-up time: completions need neither)
    from wfdsl.language.file_reader import read_workflow_file  # noqa: PLC0415

    file_tree, found = read_workflow_file(source)
    pool = config.pool if isinstance(config.pool, PoolLike) else None
    tree, more = expand(file_tree, params=params, pool=pool)
    if tree is None:
        return Checked(source, None, in_order([*found, *more]))
    return _checked(source, tree, [*found, *more], config)


def _require_text(text: object) -> None:
    if isinstance(text, str):
        return
    if isinstance(text, bytes | bytearray):
        raise UsageError('text must be a str, and these are bytes: write data.decode("utf-8")')
    if isinstance(text, PathLike):
        raise UsageError(f"text must be a str (got the path {str(text)!r}): write wfdsl.load(FILE)")
    raise UsageError(f"text must be a str (got {type(text).__name__})")


def _is_of_files(form: str) -> bool:
    if form not in get_args(Form):
        raise UsageError(f'form must be "completion" or "wf" (got {form!r:.60})')
    return form == "wf"


def _checked(source: Source, tree: WorkflowTree, found: list[Diagnostic], config: CheckConfig) -> Checked:
    problems = check(tree, config)
    found = [*found, *(once_per_place(problems) if tree.names else problems)]
    ok = not any(problem.is_error for problem in found)
    if tree.names and not ok:  # what a step was meant to see is not known before the errors are corrected
        found = [problem for problem in found if problem.code != "dead-step"]
    workers = getattr(config.pool, "labels", None) if tree.names else None  # only files have pictures with names
    return Checked(source, Workflow.from_tree(tree, workers) if ok else None, in_order(found), tree=tree)


def too_long(max_chars: int) -> Diagnostic:
    """A text over the limit, which is not read."""
    message = f"the text has more than {max_chars:,} characters"
    help_ = "check that it is the right text; in Python, max_chars= raises the limit"
    return Diagnostic("text-too-long", "error", message, NOWHERE, help=help_)


def parse(text: str, config: CheckConfig | None = None, **options: Any) -> Workflow:
    """The workflow that a completion holds. Arguments as for `analyze`.

    Raises:
        WorkflowError: there is none; it carries the diagnostics. Three empty lists are not a workflow in any round.
        UsageError: it is not a text, or an option is outside its limits.
    """
    return _workflow_of(analyze(text, config, **options))


def _workflow_of(checked: Checked) -> Workflow:
    checked.raise_for_errors()
    if checked.workflow is None:
        raise WorkflowError([empty_workflow(checked.tree.span if checked.tree else NOWHERE)], checked.source)
    return checked.workflow


def load(
    path: str | PathLike[str],
    config: CheckConfig | None = None,
    *,
    params: Mapping[str, str | float] | None = None,
    form: Form | None = None,
    **options: Any,
) -> Workflow:
    """The workflow in a file: a workflow file if it is named `*.wf`, else a completion.

    Args:
        path: the file.
        config: what it is checked against; without it, `CheckConfig()`, for a workflow file with any number of steps.
        params: values for the parameters of a workflow file, as texts or numbers.
        form: "wf" or "completion", if the name does not tell.
        options: fields of `CheckConfig`, instead of those of `config`; names and tags are looked up in `pool`.

    Raises:
        WorkflowError: the file holds no valid workflow; it carries the diagnostics.
        UsageError: the file cannot be read, or a parameter or an option cannot be set.
    """
    return _workflow_of(analyze_path(path, config, params=params, form=form, **options))


def analyze_path(
    path: str | PathLike[str],
    config: CheckConfig | None = None,
    *,
    params: Mapping[str, str | float] | None = None,
    form: Form | None = None,
    **options: Any,
) -> Checked:
    """Read and check a file, as `load` does, without raising on what it holds.

    Raises:
        UsageError: the file cannot be read, or a parameter or an option cannot be set.
    """
    max_chars = changed(config or _DEFAULT, options).max_chars
    text = read_text(path, max_chars=max_chars)
    if text is None:
        return Checked(Source("", str(path)), None, (too_long(max_chars),))
    return analyze(text, config, form=form or form_of(path), params=params, name=str(path), **options)


def dumps(workflow: Workflow, form: Form = "completion") -> str:
    """A workflow as text in either form, a file with its names; reading it gives an equal workflow.

    Raises:
        WorkflowError: the completion form cannot say it (an unresolved worker, a depth of its own).
        UsageError: there is no such form.
    """
    if _is_of_files(form):  # completions do not need the one, nor files the other
        from wfdsl.language.file_printer import print_file as printed  # noqa: PLC0415
    else:
        from wfdsl.language.completion import print_completion as printed  # noqa: PLC0415

    return printed(workflow)


def form_of(path: str | PathLike[str]) -> Form:
    """Which form a file is written in, by its name."""
    return "wf" if Path(path).suffix == ".wf" else "completion"


def read_text(path: str | PathLike[str], *, max_chars: int = MAX_CHARS) -> str | None:
    """A file's text, or None if it is longer than the limit, of which no more than the limit is read.

    Raises:
        UsageError: it cannot be read, or is not UTF-8 text.
    """
    try:
        with Path(path).open("rb") as file:
            return read_stream(file, str(path), max_chars)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path}: cannot be read: {why.lower()}") from error
