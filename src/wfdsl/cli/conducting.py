"""The options that `solve` and `prompt` share: the Conductor, what it is told, and which workers it is offered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wfdsl.cli.inputs import count, count_or_none
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from wfdsl.conductor.conductor import Conductor
    from wfdsl.conductor.offer import Offering
    from wfdsl.pool import Pool
    from wfdsl.workflow import Workflow

DEFAULT_POOL = "local"
LOCAL = "local"
_LOCAL_STEPS = 3
_LOCAL_SUBTASK = 80  # characters; the smallest models do not come to an end by themselves
_STEPS = 5


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """Add what shapes a prompt; the smallest model, `local`, is told less than others unless options say otherwise."""
    parser.add_argument(
        "--conductor",
        metavar="MODEL",
        default=LOCAL,
        help="openai:MODEL, anthropic:MODEL, transformers:PATH, a pool file with one worker, or local (the default)",
    )
    parser.add_argument("--pool", metavar="NAME|FILE", default=DEFAULT_POOL, help="the workers (default: %(default)s)")
    parser.add_argument("--prompt", metavar="NAME|FILE", help="the template set: paper, tiny or a file of your own")
    parser.add_argument("--examples", metavar="NAME|FILE", help="the few-shot examples: a shipped set, a file, or none")
    parser.add_argument("--max-steps", type=count, metavar="N", help="the most steps (default: 5; 3 for `local`)")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="WORKER",
        help="leave out workers, by name or tag",
    )
    parser.add_argument("--pick", type=count, metavar="K", help="offer K workers, drawn at random for each question")
    parser.add_argument("--shuffle", action="store_true", help="deal out the ordinals anew for each question")
    parser.add_argument("--offer-seed", type=int, default=0, metavar="N", help="what both draws depend on")


def add_conductor_options(parser: argparse.ArgumentParser) -> None:
    """Add what says how it conducts."""
    parser.add_argument("--base-url", metavar="URL", help="the Conductor's server, if it is not the provider's own")
    parser.add_argument("--api-key-env", metavar="NAME", help="the environment variable with the Conductor's key")
    parser.add_argument("--max-tokens", type=count, metavar="N", help="the longest completion (default: 1024 tokens)")
    parser.add_argument("--rounds", type=count_or_none, default=1, metavar="N", help="the most revisions (default: 1)")
    parser.add_argument("--reasks", type=count_or_none, default=2, metavar="N", help="the most re-asks (default: 2)")
    parser.add_argument("--profile", choices=["strict", "lenient"], default="lenient", help="how completions are read")
    parser.add_argument("--default", metavar="FILE.wf", help="what runs where no completion is valid")
    parser.add_argument(
        "--call-factor", type=float, metavar="X", help="a revision makes at most X times the first's calls"
    )
    parser.add_argument(
        "--grammar",
        choices=["auto", "on", "off"],
        default="auto",
        help="hold the model to valid workflows; its server has to take llama.cpp grammars (auto: for `local`)",
    )


def conductor_of(args: argparse.Namespace, pool: Pool) -> Conductor:
    """The Conductor that the options describe.

    Raises:
        UsageError: an option cannot be used.
        WorkflowError: the default workflow is not valid.
    """
    from wfdsl.conductor.conductor import Conductor
    from wfdsl.conductor.model import model_entry

    settings = {"base_url": args.base_url, "api_key_env": args.api_key_env, "max_tokens": args.max_tokens}
    return Conductor(
        model_entry(args.conductor, **settings),
        prompt=prompt_of(args),
        max_rounds=args.rounds,
        reasks=args.reasks,
        default=_default(args, pool),
        profile=args.profile,
        max_steps=max_steps_of(args),
        call_factor=args.call_factor,
        grammar=_grammar(args),
        offering=offering_of(args),
    )


def prompt_of(args: argparse.Namespace) -> Any:
    """The template set: a checkpoint's own; else the one that is named; the smallest model gets the shortest one.

    Raises:
        UsageError: another one is named for a checkpoint than it was trained with.
    """
    from wfdsl.conductor.prompt import Prompt

    trained = _trained(args)
    if trained is not None:
        if args.prompt or args.examples or args.max_steps:
            raise UsageError("this checkpoint is asked as it was trained: leave out --prompt, --examples, --max-steps")
        return trained.prompt
    return Prompt.load(args.prompt or ("tiny" if _is_local(args) else "paper"), examples=args.examples)


def max_steps_of(args: argparse.Namespace) -> int:
    """The most steps."""
    trained = _trained(args)
    if trained is not None:
        return int(trained.max_steps)
    return int(args.max_steps or (_LOCAL_STEPS if _is_local(args) else _STEPS))


def offering_of(args: argparse.Namespace) -> Offering:
    """Which workers are offered."""
    from wfdsl.conductor.offer import Offering

    return Offering(without=tuple(args.without), pick=args.pick, shuffle=args.shuffle, seed=args.offer_seed)


def _trained(args: argparse.Namespace) -> Any:
    """What the checkpoint that conducts was trained with; None if it is none, or does not say."""
    from wfdsl.conductor.checkpoint import load_prompt

    provider, _, folder = args.conductor.partition(":")
    return load_prompt(folder) if provider == "transformers" else None


def _is_local(args: argparse.Namespace) -> bool:
    return getattr(args, "conductor", None) == LOCAL


def _grammar(args: argparse.Namespace) -> Any:
    from wfdsl.conductor.settings import Grammar

    if args.grammar == "off" or (args.grammar == "auto" and not _is_local(args)):
        return None
    return Grammar(max_prose=0, max_subtask=_LOCAL_SUBTASK) if _is_local(args) else Grammar()


def _default(args: argparse.Namespace, pool: Pool) -> Workflow | None:
    from wfdsl.api import load

    return None if args.default is None else load(args.default, pool=pool)
