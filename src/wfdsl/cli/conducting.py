"""The options of a Conductor, which `solve` and `prompt` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl.cli.configuration import add_config_options, add_flag, add_pool_option, add_setting
from wfdsl.cli.inputs import count, count_or_none, whole
from wfdsl.cli.running import factor

if TYPE_CHECKING:
    import argparse

    from wfdsl.experiment.tables import ConductorTable


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
        "--rounds",
        "conductor.rounds",
        type=count_or_none,
        metavar="N",
        help="the most revisions (default: 1, or what a checkpoint was trained for)",
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
        parser, "--offer-seed", "conductor.seed", type=whole, metavar="N", help="what both draws depend on (default: 0)"
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


def names_a_workflow(table: ConductorTable) -> bool:
    """Whether a `.wf` file stands where a Conductor could."""
    return table.model.endswith(".wf")
