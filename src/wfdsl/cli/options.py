"""Where options, `--set` and `--config` come together: each option stands for a key of the configuration file.

An option goes before `--set`, that before the file, and the file before the default. Which options were given is kept
in the namespace as they are read; nothing is imported for them until a command asks for its experiment.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from wfdsl.errors import UsageError

if TYPE_CHECKING:  # start-up time: no command needs them to read its arguments
    from wfdsl.conductor.config import ConductorConfig
    from wfdsl.experiment.experiment import Experiment
    from wfdsl.workers.pool import Pool

_MOST_DIGITS = 18
_LONGEST_NAME = 100  # characters of a run's name; our choice


class _Keep(argparse.Action):
    """Keeps an option's value under the key that it stands for; one that may be repeated adds to a list."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, repeated: bool = False, **more: Any) -> None:
        super().__init__(option_strings, dest, default=argparse.SUPPRESS, **more)
        self._repeated = repeated

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  (argparse passes it)
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Take in an option."""
        value = self.const if self.nargs == 0 else values
        kept = dict(getattr(namespace, "kept", {}))
        earlier = kept[self.dest][0] if self._repeated and self.dest in kept else []
        kept[self.dest] = ([*earlier, value] if self._repeated else value, option_string)
        namespace.kept = kept


def add_setting(parser: argparse.ArgumentParser, option: str, key: str, **more: Any) -> None:
    """Add an option that stands for a key, such as `conductor.max_rounds`."""
    parser.add_argument(option, dest=key, action=_Keep, **more)


def add_flag(parser: argparse.ArgumentParser, option: str, key: str, *, help: str, value: bool = True) -> None:  # noqa: A002  (argparse's word)
    """Add an option without a value that sets a key."""
    parser.add_argument(option, dest=key, action=_Keep, nargs=0, const=value, help=help)


def add_config_options(parser: argparse.ArgumentParser, *, parameters: bool = True) -> None:
    """Add `--config` and `--set`; `parameters` are those of a `.wf` file, which `--set` sets too."""
    parser.add_argument("--config", metavar="FILE", help="a TOML file with [pool], [conductor], [budget] and [run]")
    also = "a parameter of a .wf file, or " if parameters else ""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"{also}a key of --config, such as budget.usd=0.5; may be repeated",
    )


def add_pool_option(parser: argparse.ArgumentParser, help: str) -> None:  # noqa: A002  (argparse's word)
    """Add `--pool`."""
    add_setting(parser, "--pool", "pool.use", metavar="NAME|FILE", help=help)


def parameters_of(args: argparse.Namespace) -> dict[str, str]:
    """The parameters of a `.wf` file that `--set` gives: names without a dot.

    Raises:
        UsageError: one is not of the form NAME=VALUE, or is given twice.
    """
    return {name: value for name, value in _assignments(args).items() if "." not in name}


def require_no_parameters(args: argparse.Namespace, why: str) -> None:
    """Refuse parameters where there is no `.wf` file to take them.

    Raises:
        UsageError: there are some.
    """
    for name in parameters_of(args):
        raise UsageError(f"--set {name}: {why}; a key of a configuration is written TABLE.KEY=VALUE")


def experiment_of(args: argparse.Namespace) -> Experiment:
    """What is run and how, as options, `--set` and `--config` say.

    Raises:
        UsageError: one of them cannot be used.
    """
    found = _read(args)
    if args.config is None and "pool.use" in _kept(args):
        _print_unread_tables(_kept(args)["pool.use"][0])
    return found


def pool_of(args: argparse.Namespace) -> Pool | None:
    """The pool that options, `--set` or `--config` name, or None; the only part that a check needs.

    Raises:
        UsageError: it cannot be used.
    """
    asked = args.config is not None or "pool.use" in _kept(args) or any("." in name for name in _assignments(args))
    return _read(args).pool if asked else None


def _read(args: argparse.Namespace) -> Experiment:
    from wfdsl.experiment.experiment import read_experiment
    from wfdsl.experiment.setting import Setting

    sets = [Setting.parse(f"{name}={value}") for name, value in _assignments(args).items() if "." in name]
    options = [Setting(key, value, option) for key, (value, option) in _kept(args).items()]
    return read_experiment(args.config, [*sets, *options])


def _print_unread_tables(pool: str) -> None:
    """`--pool` takes the workers of a file and nothing else: a budget that is there must not seem to hold."""
    from pathlib import Path

    from wfdsl.toml_file import read_toml_file
    from wfdsl.workers.pool_file import names_a_file

    others = (
        [f"[{name}]" for name in read_toml_file(Path(pool), "pool file") if name != "pool"]
        if names_a_file(pool)
        else []
    )
    if others:
        print(
            f"note: --pool takes only the workers of {pool}: --config {pool} also takes {', '.join(others)}",
            file=sys.stderr,
        )


def given(args: argparse.Namespace, table: str) -> dict[str, str]:
    """The options that were given for keys of a table: the key, without its table, and the option."""
    inside = f"{table}."
    return {key.removeprefix(inside): option for key, (_, option) in _kept(args).items() if key.startswith(inside)}


def _kept(args: argparse.Namespace) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = getattr(args, "kept", {})
    return found


def _assignments(args: argparse.Namespace) -> dict[str, str]:
    found: dict[str, str] = {}
    for assignment in args.set:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {assignment!r}: write NAME=VALUE")
        if name.strip() in found:
            raise UsageError(f"--set {name.strip()} is given twice")
        found[name.strip()] = value
    return found


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """Add what shapes a prompt; the smallest model, `local`, is told less than others unless options say otherwise."""
    add_setting(
        parser,
        "--conductor",
        "conductor.model",
        metavar="MODEL",
        help="openai:MODEL, anthropic:MODEL, a checkpoint's folder, a pool file with one worker, a .wf file that is "
        "run as it is, or local (the default)",
    )
    add_pool_option(parser, "the workers (default: local)")
    add_config_options(parser)
    add_setting(
        parser,
        "--prompt",
        "conductor.prompt",
        metavar="NAME|FILE",
        help="the template set: paper, tiny or a file of your own",
    )
    add_setting(
        parser,
        "--examples",
        "conductor.examples",
        metavar="NAME|FILE",
        help="the few-shot examples: a shipped set, a file, or none",
    )
    add_setting(
        parser,
        "--max-steps",
        "conductor.max_steps",
        type=count,
        metavar="N",
        help="the most steps (default: 5; 3 for `local`)",
    )
    add_setting(
        parser,
        "--max-rounds",
        "conductor.max_rounds",
        type=count_or_none,
        metavar="N",
        help="the most rounds after round 0 (default: 1, or what a checkpoint was trained with)",
    )
    _add_offering_options(parser)


def _add_offering_options(parser: argparse.ArgumentParser) -> None:
    add_setting(
        parser,
        "--without",
        "conductor.without",
        repeated=True,
        metavar="WORKER",
        help="leave out workers, by name or tag; may be repeated",
    )
    add_setting(
        parser,
        "--pick",
        "conductor.pick",
        type=count,
        metavar="K",
        help="offer K workers, drawn at random for each question",
    )
    add_flag(parser, "--shuffle", "conductor.shuffle", help="number the workers anew for each question, from 0 upwards")
    add_setting(
        parser,
        "--subset-seed",
        "conductor.seed",
        type=whole,
        metavar="N",
        help="what both draws depend on (default: 0)",
    )


def add_conductor_options(parser: argparse.ArgumentParser) -> None:
    """Add what says how it conducts."""
    add_setting(
        parser,
        "--base-url",
        "conductor.base_url",
        metavar="URL",
        help="the Conductor's server, if it is not the provider's own",
    )
    add_setting(
        parser,
        "--api-key-env",
        "conductor.api_key_env",
        metavar="NAME",
        help="the environment variable with the Conductor's key",
    )
    add_setting(
        parser,
        "--max-tokens",
        "conductor.max_tokens",
        type=count,
        metavar="N",
        help="the longest completion (default: 1024 tokens)",
    )
    add_setting(
        parser, "--reasks", "conductor.reasks", type=count_or_none, metavar="N", help="the most re-asks (default: 2)"
    )
    add_setting(
        parser,
        "--profile",
        "conductor.profile",
        choices=["strict", "lenient"],
        help="how completions are read (default: lenient)",
    )
    add_setting(
        parser, "--default", "conductor.default", metavar="FILE.wf", help="what runs where no completion is valid"
    )
    add_setting(
        parser,
        "--call-factor",
        "conductor.call_factor",
        type=factor,
        metavar="X",
        help="a revision makes at most X times the first's calls",
    )
    add_setting(
        parser,
        "--grammar",
        "conductor.grammar",
        choices=["auto", "on", "off"],
        help="hold the model to valid workflows, where its server takes grammars (auto: for `local`)",
    )


def names_a_workflow(table: ConductorConfig) -> bool:
    """Whether a `.wf` file stands where a Conductor could."""
    return table.model.endswith(".wf")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what a run that is gone on with takes too."""
    parser.add_argument("--json", action="store_true", help="print the whole trace as JSON in place of the answer")
    add_setting(
        parser, "--concurrency", "run.concurrency", type=count, metavar="N", help="the most calls in flight at once"
    )
    add_setting(
        parser, "--timeout", "run.timeout_s", type=seconds, metavar="S", help="the most seconds for the whole run"
    )
    add_setting(
        parser, "--step-timeout", "run.step_timeout_s", type=seconds, metavar="S", help="the most seconds for a step"
    )
    add_setting(parser, "--budget-calls", "budget.calls", type=whole, metavar="N", help="the most calls")
    add_setting(
        parser,
        "--budget-tokens",
        "budget.tokens",
        type=whole,
        metavar="N",
        help="the most tokens, input and output",
    )
    add_setting(parser, "--budget-usd", "budget.usd", type=dollars, metavar="USD", help="the most US dollars")
    add_setting(
        parser, "--budget-seconds", "budget.seconds", type=seconds, metavar="S", help="the most seconds of wall time"
    )
    parser.add_argument("--otel", action="store_true", help="send OpenTelemetry spans, as the environment sets it up")
    add_flag(parser, "--reuse", "run.reuse", help="use replies again that other runs have in the journal")


def add_new_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what only a new run takes."""
    add_setting(
        parser, "--seed", "run.seed", type=whole, metavar="N", help="make workers that honour a seed repeatable"
    )
    add_setting(
        parser,
        "--max-depth",
        "run.max_depth",
        type=count_or_none,
        metavar="N",
        help="levels of Conductor nodes (default: 1)",
    )
    add_flag(parser, "--no-journal", "run.journal", value=False, help="keep nothing: the run cannot be gone on with")


def seconds(text: str) -> float:
    """An argument that is a number of seconds above 0."""
    return _real(text, "a number of seconds above 0", zero=False)


def dollars(text: str) -> float:
    """An argument that is an amount of US dollars."""
    return _real(text, "an amount of US dollars", zero=True)


def factor(text: str) -> float:
    """An argument that is a number above 0."""
    return _real(text, "a number above 0", zero=False)


def _real(text: str, what: str, *, zero: bool) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf or (zero and number == 0)):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return number


def count(text: str) -> int:
    """An argument that is a whole number from 1."""
    return _whole_number(text, least=1)


def count_or_none(text: str) -> int:
    """An argument that is a whole number from 0."""
    return _whole_number(text, least=0)


def whole(text: str) -> int:
    """An argument that is a whole number, which may be below 0."""
    return _number(text, "a whole number") if text[:1] == "-" else _whole_number(text, least=0)


def some_text(text: str) -> str:
    """An argument that may not be blank: that is most often a shell variable that is not set."""
    if not text.strip():
        _refuse(f"{text!r} is blank")
    return text


def run_name(text: str) -> str:
    """An argument that names a run."""
    if not text or not text.isprintable() or text != text.strip() or len(text) > _LONGEST_NAME:
        _refuse(f"{text[:_LONGEST_NAME]!r} is no name of a run: write up to {_LONGEST_NAME} printable characters")
    return text


def _whole_number(text: str, *, least: int) -> int:
    what = f"a whole number from {least}"
    number = _number(text, what)
    if number < least:
        _refuse(f"{text!r} is not {what}")
    return number


def _number(text: str, what: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        _refuse(f"{text!r} is not {what}")
    if len(digits) > _MOST_DIGITS:
        _refuse(f"{text[:_MOST_DIGITS]}... is not {what} of {_MOST_DIGITS} digits at most")
    return int(text)


def _refuse(message: str) -> NoReturn:
    raise argparse.ArgumentTypeError(message)
