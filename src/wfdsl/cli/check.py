"""Check workflow files and completions.

Each FILE is a .wf file, a completion, or - for standard input. --explain says what a diagnostic's code means;
--grammar prints the strict completion language as a grammar for constrained decoders.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wfdsl.api import Checked
from wfdsl.cli.display.streams import print_utf8
from wfdsl.cli.inputs import add_input_options, analyze_input, check_options_of, print_diagnostic
from wfdsl.cli.options import INPUT, OUTPUT, group, load_pool
from wfdsl.cli.output import INVALID, OK, print_json, reported_error
from wfdsl.errors import UsageError
from wfdsl.language.check import DEFAULT_MAX_STEPS, CheckConfig
from wfdsl.language.diagnostics import as_json, summary
from wfdsl.render.text import counted
from wfdsl.settings import did_you_mean

if TYPE_CHECKING:  # start-up time: only --pool needs it
    from wfdsl.workers.pool import Pool

EXAMPLES = (
    "wfdsl check debate.wf --pool pool.toml",
    "wfdsl check --explain access-not-earlier",
    "wfdsl check --grammar gbnf --pool-size 3",
)
KINDS = {
    "error": "error",
    "repair": "a warning in the lenient profile, an error in the strict one",
    "warning": "warning",
    "note": "note",
}
FORMS = {"both": "both forms", "completion": "completions", "wf": "workflow files"}
_MOST_WORKERS = 1000  # our choice; each is an alternative of the grammar


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl check`."""
    asked, output = group(parser, INPUT), group(parser, OUTPUT)
    asked.add_argument("files", nargs="*", metavar="FILE", help="a .wf file or a completion; - reads standard input")
    add_input_options(parser, profile="strict")
    output.add_argument("--json", action="store_true", help="print a JSON object a line for each file")
    explaining = output.add_argument(
        "--explain",
        nargs="?",
        const="",
        metavar="CODE",
        help="say what a diagnostic's code means, with an example and its correction; list all codes without CODE",
    )
    explaining.completer = lambda **_: list(import_module("wfdsl.language.codes").CODES)  # type: ignore[attr-defined]
    output.add_argument(
        "--grammar",
        choices=["llguidance", "gbnf"],
        help="print the grammar of strict completions, as llguidance's Lark or llama.cpp's GBNF; with --pool or "
        "--pool-size",
    )


def execute(args: argparse.Namespace) -> int:
    """Check every file; 2 if one cannot be read, else 1 if one is invalid."""
    if args.explain is not None:
        return _explain(args.explain)
    if args.grammar is not None:
        return _print_grammar(args)
    if not args.files:
        raise UsageError("give a FILE: a .wf file or a completion; - reads standard input")
    pool = load_pool(args)
    return max(_check(file, args, pool) for file in args.files)


def _check(file: str, args: argparse.Namespace, pool: Pool | None) -> int:
    try:
        checked = analyze_input(file, args, pool)
    except UsageError as error:
        return reported_error("wfdsl check", error)
    if args.json:
        print_json(_verdict(checked, file))
    else:
        _print_text(checked)
    return OK if checked.ok else INVALID


def _verdict(checked: Checked, file: str) -> dict[str, Any]:
    workflow = checked.workflow
    lists = None
    if workflow is not None and not workflow.unresolved:
        lists = {
            "model_id": [step.worker for step in workflow],
            "subtasks": [step.subtask for step in workflow],
            "access_list": ["all" if step.access == "all" else list(step.access) for step in workflow],
            "sees": [list(workflow.sees(step)) for step in range(len(workflow))],
        }
    return {
        "file": file,
        "ok": checked.ok,
        "passthrough": checked.passthrough,
        "workflow": lists,
        "diagnostics": [as_json(found, checked.source) for found in checked.diagnostics],
    }


def _print_text(checked: Checked) -> None:
    for found in checked.diagnostics:
        print_diagnostic(found, checked.source, sys.stdout)
        print()
    counts = summary(checked.diagnostics)
    if not checked.ok:
        print(f"{checked.source.name}: {counts}")
        return
    what = "keeps the previous response" if checked.workflow is None else counted(len(checked.workflow), "step")
    print(f"{checked.source.name}: ok, {what}{f', {counts}' if counts else ''}")


def _explain(name: str) -> int:
    """Explain one code, or list all."""
    from wfdsl.language.codes import CODES

    if not name:
        width = max(map(len, CODES))
        for each in CODES.values():
            print(f"{each.name:<{width}}  {each.kind:<7}  {each.summary}")
        return OK
    if name not in CODES:
        raise UsageError(f"there is no code {name!r}. {did_you_mean(name, CODES)}")
    code = CODES[name]
    print(f"{code.name}: {code.summary}\n({KINDS[code.kind]}; {FORMS[code.form]})\n\n{code.explanation}")
    for title, text in (("Wrong:", code.wrong), ("Right:", code.right)):
        if text:
            print("\n    ".join([f"\n{title}", *text.splitlines()]))
    return OK


def _print_grammar(args: argparse.Namespace) -> int:
    """Print the grammar for the workers and limits that the options name.

    Everything that a model writes under it is bounded prose, followed by a valid workflow. The first comment says how
    large max_tokens must be so that no completion is cut.
    """
    from wfdsl.cli.options import experiment_of
    from wfdsl.language.constrained import gbnf, llguidance_lark

    if args.files:
        raise UsageError(f"--grammar reads no file: leave {args.files[0]} out")
    pool = load_pool(args)
    if pool is None and args.pool_size is None:
        raise UsageError("--grammar needs the workers: give --pool or --pool-size")
    workers = range(args.pool_size) if pool is None else pool.indices
    if len(workers) > _MOST_WORKERS:
        raise UsageError(f"a grammar has at most {_MOST_WORKERS} workers (got {len(workers)})")
    config, table = CheckConfig(**check_options_of(args, pool)), experiment_of(args).conductor
    bounds = {"max_prose": table.max_prose, "max_subtask": table.max_subtask}
    grammar = (gbnf if args.grammar == "gbnf" else llguidance_lark)(
        workers,
        config.max_steps or DEFAULT_MAX_STEPS,
        recursion=config.recursion,
        access=config.access,
        **{name: value for name, value in bounds.items() if value is not None},
    )
    print_utf8(grammar)
    return OK
