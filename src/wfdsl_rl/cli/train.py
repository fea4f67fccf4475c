"""Train a Conductor: a preset or a TOML file in, checkpoints, completions and metrics out.

`wfdsl-train PRESET|FILE.toml` trains, and `wfdsl-train export DIR --out FOLDER` exports a model for serving.
`wfdsl-train strategies DIR` shows what the workflows of a training were like.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl._version import __version__
from wfdsl.cli.options import INPUT, OUTPUT, Parser, answer_tab, complete, count, group
from wfdsl.cli.output import FAILED, OK, SPENT, Interrupted, ended, print_json
from wfdsl.errors import UsageError, WfdslError
from wfdsl.installation import install_command

if TYPE_CHECKING:  # start-up time: pydantic
    from wfdsl_rl.training.plan import Setup

EXAMPLES = (
    "wfdsl-train gym --dry-run",
    "wfdsl-train my.toml --set train.stages.base.num_generations=8 --out runs/first",
    "wfdsl-train --resume runs/first",
    "wfdsl-train export runs/first --out model",
    "wfdsl-train strategies runs/first",
)
EXIT_CODES = "exit codes: 0 fine, 2 usage or unreadable input, 3 failed, 4 budget spent, 130 interrupted"
_RESOLVED = "resolved.json"
_LIMITS_OF_RUNS = ("concurrency", "parallel", "timeout_s", "step_timeout_s", "longest_wait_s")
"""Keys of [run] that change no result of a training."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if threading.current_thread() is threading.main_thread():  # torchrun ends processes by SIGTERM
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    return ended("wfdsl-train", lambda: _execute(arguments))


def _execute(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["export"]:
        return _export(arguments[1:])
    if arguments[:1] == ["strategies"]:
        return _strategies(arguments[1:])
    parser = _parser()
    answer_tab(lambda _: parser)
    return _train(parser.parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="wfdsl-train", description=__doc__)
    parser.add_argument("--version", action="version", version=f"wfdsl-train {__version__}")
    asked, output = group(parser, INPUT), group(parser, OUTPUT)
    asked.add_argument("experiment", nargs="?", metavar="PRESET|FILE.toml", help="a preset or an experiment file")
    asked.add_argument("--stage", metavar="NAME", help="only this stage (default: all of them)")
    asked.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="e.g. train.seed=1")
    asked.add_argument("--seed", type=int, metavar="N", help="short for --set train.seed=N")
    asked.add_argument("--async", dest="overlap", action="store_true", help="run workflows during updates")
    output.add_argument("-o", "--out", metavar="DIR", help="output folder (default: runs/NAME-seedN)")
    output.add_argument("--resume", metavar="DIR", help="continue the training in a folder")
    output.add_argument("--dry-run", action="store_true", help="show what would be run; start nothing")
    output.add_argument("--json", action="store_true", help="print the dry run as JSON")
    complete(parser, EXAMPLES, EXIT_CODES)
    return parser


def _train(args: argparse.Namespace) -> int:
    if args.resume is not None:
        name, settings, stage, out = _begun(args)
    elif args.experiment is None:
        raise UsageError("no experiment given; name a preset or a .toml file (--dry-run shows what it would do)")
    else:
        seed = [] if args.seed is None else [f"train.seed={args.seed}"]
        name, settings, stage, out = args.experiment, [*args.set, *seed], args.stage, None
    from wfdsl.interpreter.record import BudgetExhausted, RunEnded
    from wfdsl_rl.scoring import NoScore
    from wfdsl_rl.training.plan import read_plan

    plan = replace(read_plan(name, settings), overlap=args.overlap)
    stages = tuple(plan.train.stages) if stage is None else (stage,)
    plan.train.require_feasible(plan.pool, stages)
    if args.json and not args.dry_run:
        raise UsageError("--json prints a dry run; add --dry-run")
    if args.dry_run:
        return _dry_run(plan, stages, as_json=args.json)
    folder = out or Path(args.out or f"runs/{Path(name).name.removesuffix('.toml')}-seed{plan.train.seed}")
    command = {"settings": settings, "stage": stage, "async": args.overlap}
    try:
        return _run(replace(plan, out=folder), stages, command, resume=args.resume is not None)
    except (RunEnded, NoScore) as error:
        spent = isinstance(error, BudgetExhausted)
        limits = [name for name in ("calls", "tokens", "usd") if getattr(plan.experiment.budget, name) is not None]
        print(f"wfdsl-train: {_advised(error, folder, limits if spent else ())}", file=sys.stderr)
        return SPENT if spent else FAILED
    except KeyboardInterrupt as interrupt:
        begun = (folder / _RESOLVED).is_file()
        raise Interrupted(f"continue with: {_again(folder)}" if begun else "nothing was begun") from interrupt


def _begun(args: argparse.Namespace) -> tuple[str, list[str], str | None, Path]:
    """The options of the training in a folder."""
    if args.overlap or any(each is not None for each in (args.experiment, args.stage, args.seed, args.out)):
        raise UsageError(
            "--resume uses the folder's options; remove the experiment, --stage, --seed, --async and --out"
        )
    folder = Path(args.resume)
    try:
        begun = json.loads((folder / _RESOLVED).read_text(encoding="utf-8"))
        args.overlap = begun["command"]["async"]
        return begun["experiment"], [*begun["command"]["settings"], *args.set], begun["command"]["stage"], folder
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder} does not hold a training: {_RESOLVED} cannot be read ({error})") from error


def _dry_run(plan: Setup, stages: Sequence[str], *, as_json: bool) -> int:
    from wfdsl_rl.cli.train_output import estimate_text
    from wfdsl_rl.training.estimate import estimate_of

    estimate = estimate_of(plan, stages)
    if plan.train.trl or plan.overlap:
        with suppress(ModuleNotFoundError):  # it is among what is missing
            from wfdsl_rl.training.pipeline import require_arguments

            require_arguments(plan, stages)
    if as_json:
        print_json(estimate.to_dict(), indent=2)
    else:
        print(estimate_text(estimate, plan.train))
    return OK


def _run(plan: Setup, stages: Sequence[str], command: dict[str, Any], *, resume: bool) -> int:
    os.environ.setdefault("GOMP_SPINCOUNT", "0")  # idle threads of torch must not spin on shared cores
    try:
        from wfdsl.evaluation.trials import hash_of
        from wfdsl_rl.cli.train_output import Progress, figures
        from wfdsl_rl.processes import joined
        from wfdsl_rl.training.pipeline import run_pipeline
        from wfdsl_rl.training.plan import run_options
    except ModuleNotFoundError as error:
        raise UsageError(f"training needs the package {error.name}: {install_command('rl')}") from error
    with ExitStack() as stack:
        processes = stack.enter_context(joined(plan.train.processes))
        watched: dict[str, Any] = {"say": lambda _: None}
        if processes.is_first:
            progress = Progress(plan.train, stages)
            options = stack.enter_context(run_options(plan.experiment, plan.pool, plan.out))
            watched = {
                "options": options,
                "listeners": (progress.on_metrics,),
                "say": progress.say,
                "on_wait": progress.on_wait,
            }
        setup = replace(plan.with_tasks(stages), processes=processes, **watched)
        resolved = {
            **plan.resolved(),
            "tasks": hash_of([task.model_dump(mode="json") for task in setup.all_tasks]),
            "files": processes.on_first(lambda: _digests(setup, stages)),
            "processes": processes.count,
            "command": command,
        }
        if resume:
            processes.on_first(lambda: _require_same(plan.out, resolved))
        last = run_pipeline(setup, stages, resume=resume, resolved=resolved)
        for line in figures(setup.out, stages) if processes.is_first else ():
            setup.say(line)
        setup.say(f"done: {last}")
    return OK


def _require_same(folder: Path, resolved: dict[str, Any]) -> None:
    """Refuse to resume with options, tasks or files other than the training's; the budget and limits may change."""
    path = folder / _RESOLVED
    begun, now = (_fixed(json.loads(text)) for text in (path.read_text(encoding="utf-8"), json.dumps(resolved)))
    changed = [key for key in begun if begun[key] != now.get(key)]
    if changed:
        raise UsageError(
            f"{path}: {', '.join(changed)} changed since the training began; change it back, or start a new training "
            "with another --out"
        )


def _digests(plan: Setup, stages: Sequence[str]) -> dict[str, str]:
    """SHA-256 of what stages read beside tasks, by path: weights, rows of SFT, and the file of a reward function."""
    from hashlib import file_digest

    from wfdsl.own_code import file_of

    model, own = Path(plan.train.model), file_of(plan.train.reward_function)
    rows = [Path(getattr(plan.train.stages[name], "rows", "")) for name in stages]
    found = {}
    for path in (model, *model.glob("*.safetensors"), *model.glob("pytorch_model*.bin"), *rows, own):
        if path is not None and path.is_file():
            with path.open("rb") as file:
                found[str(path)] = file_digest(file, "sha256").hexdigest()
    return found


def _fixed(resolved: dict[str, Any]) -> dict[str, Any]:
    """What a resumed training has to have in common with the one that began."""
    workers = [{**worker, "limits": None} for worker in resolved["pool"]["workers"]]
    run = {key: value for key, value in resolved["run"].items() if key not in _LIMITS_OF_RUNS}
    fixed = {key: value for key, value in resolved.items() if key not in ("budget", "command", "files")}
    return {**fixed, **resolved.get("files", {}), "pool": {**resolved["pool"], "workers": workers}, "run": run}


def _advised(error: WfdslError, folder: Path, limits: Sequence[str]) -> str:
    """What ended a training, and how to continue it: not the one run, as `wfdsl runs resume` does."""
    if limits:
        larger = " ".join(f"--set budget.{name}=N" for name in limits)
        return f"{error}; continue with a larger budget: {_again(folder)} {larger}"
    return f"{error}; fix the cause, then continue with: {_again(folder)}"


def _again(folder: Path) -> str:
    return f"wfdsl-train --resume {shlex.quote(str(folder))}"


def _export_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="wfdsl-train export", description="Export a model as a folder for serving.")
    parser.add_argument("folder", metavar="DIR", help="the folder of a training, or of a stage's model")
    parser.add_argument("-o", "--out", required=True, metavar="OUT", help="the folder to make")
    parser.add_argument(
        "--gguf",
        nargs="?",
        const="f32",
        choices=["f32", "q8_0", "q5_0"],
        help="also write a GGUF file, which runs without torch, in 32, 8 or 5 bits (default: f32)",
    )
    complete(parser, ["wfdsl-train export runs/gym-seed0 --out model"])
    return parser


def _export(arguments: Sequence[str]) -> int:
    args = _export_parser().parse_args(arguments)
    try:
        from wfdsl_rl.training.export import export
    except ModuleNotFoundError as error:
        raise UsageError(f"exporting needs the package {error.name}: {install_command('rl')}") from error

    export(Path(args.folder), Path(args.out), gguf=args.gguf, say=print)
    return OK


def _strategies_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="wfdsl-train strategies", description="Show what a training wrote, over its iterations.")
    parser.add_argument("folder", metavar="DIR", help="the folder of a training")
    parser.add_argument("--every", type=count, default=10, metavar="N", help="iterations of a row (default: 10)")
    complete(parser, ["wfdsl-train strategies runs/gym-seed0 --every 20"])
    return parser


def _strategies(arguments: Sequence[str]) -> int:
    args = _strategies_parser().parse_args(arguments)
    from wfdsl.cli.eval_reports import print_parts
    from wfdsl_rl.training.strategies import HEAD, strategies_of

    for each in strategies_of(Path(args.folder), every=args.every):
        print_parts([f"stage {each.stage}", (HEAD, [window.row for window in each.windows]), "\n".join(each.lines)])
    return OK


if __name__ == "__main__":
    sys.exit(main())
