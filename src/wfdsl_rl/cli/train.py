"""Train a Conductor: a preset or a TOML file in, checkpoints, completions, metrics and plots out.

wfdsl-train gym-tiny                     train the tiny Conductor on simulated workers
wfdsl-train FILE.toml --dry-run          show what would be run, a prompt, and what it would need
wfdsl-train --resume DIR                 go on with a training that was interrupted
wfdsl-train export DIR -o OUT            make a folder for serving out of a stage's model
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wfdsl._version import __version__
from wfdsl.cli.output import OK, ended
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wfdsl_rl.training.config import StageName
    from wfdsl_rl.training.setup import Planned

_STAGES = ("warmup", "base", "pools", "recursion", "all")
_RESOLVED = "resolved.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return ended("wfdsl-train", lambda: _execute(arguments), on_interrupt="interrupted; go on with --resume DIR")


def _execute(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["export"]:
        return _export(arguments[1:])
    return _train(_parser().parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wfdsl-train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit codes: 0 fine, 2 usage or unreadable input, 3 failed, 4 budget spent, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"wfdsl-train {__version__}")
    parser.add_argument("experiment", nargs="?", metavar="PRESET|FILE.toml", help="what is trained, and how")
    parser.add_argument("--stage", choices=_STAGES, default="all", help="which stage (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="such as train.base.rollouts=8")
    parser.add_argument("--seed", type=int, metavar="N", help="short for --set train.seed=N")
    parser.add_argument("--out", metavar="DIR", help="where everything goes (default: runs/NAME-seedN)")
    parser.add_argument("--resume", metavar="DIR", help="go on with what is in a folder")
    parser.add_argument("--dry-run", action="store_true", help="show what would be run; start nothing")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how progress is told")
    return parser


def _train(args: argparse.Namespace) -> int:
    if args.resume is not None:
        name, settings, stage, out = _begun(args)
    elif args.experiment is None:
        raise UsageError("say what to train: a preset or a .toml file; --dry-run shows what it would do")
    else:
        seed = [] if args.seed is None else [f"train.seed={args.seed}"]
        name, settings, stage, out = args.experiment, [*args.set, *seed], args.stage, None
    from wfdsl_rl.training.setup import plan_training

    planned = plan_training(name, settings)
    stages: tuple[StageName, ...] = planned.train.stages() if stage == "all" else (cast("StageName", stage),)
    if args.dry_run:
        return _dry_run(planned, stages, args.format)
    folder = out or Path(args.out or f"runs/{Path(name).stem}-seed{planned.train.seed}")
    return _run(planned, stages, folder, {"settings": settings, "stage": stage}, args)


def _begun(args: argparse.Namespace) -> tuple[str, list[str], str, Path]:
    """What a folder says of the training that it holds."""
    if args.experiment is not None or args.set or args.seed is not None or args.out is not None:
        raise UsageError("--resume goes on with what was begun: leave out the experiment, --set, --seed and --out")
    folder = Path(args.resume)
    try:
        begun = json.loads((folder / _RESOLVED).read_text(encoding="utf-8"))
        return begun["experiment"], list(begun["command"]["settings"]), begun["command"]["stage"], folder
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder} holds no training that was begun: {_RESOLVED} cannot be read ({error})") from error


def _dry_run(planned: Planned, stages: Sequence[StageName], form: str) -> int:
    from wfdsl_rl.training.estimate import forecast_of

    forecast = forecast_of(planned, stages)
    print(json.dumps(forecast.to_dict(), indent=2) if form == "json" else forecast.to_text())
    return OK


def _run(
    planned: Planned, stages: Sequence[StageName], folder: Path, command: dict[str, Any], args: argparse.Namespace
) -> int:
    os.environ.setdefault("GOMP_SPINCOUNT", "0")  # idle threads of torch must not spin on shared cores
    try:
        from wfdsl_rl.training.pipeline import require_fresh, run_course
        from wfdsl_rl.training.progress import Progress
        from wfdsl_rl.training.resources import rollout_options
        from wfdsl_rl.training.setting import Setting, keep_resolved
    except ModuleNotFoundError as error:
        raise UsageError(f'training needs the package {error.name}: pip install "wfdsl[rl]"') from error
    resolved = {**planned.resolved(), "command": command}
    _require_same(folder, resolved, resume=args.resume is not None)
    with (
        Progress(planned.train, stages, form=args.format) as progress,
        rollout_options(planned.experiment, planned.pool, folder) as options,
    ):
        setting = Setting(
            train=planned.train,
            prompt=planned.prompt,
            max_steps=planned.max_steps,
            pool=planned.pool,
            tasks=planned.tasks(),
            eval_tasks=planned.eval_tasks(),
            out=folder,
            options=options,
            listeners=(progress.hear,),
            say=progress.say,
        )
        require_fresh(setting, stages, resume=args.resume is not None)
        if args.resume is None:  # what was begun is not written anew: a full disk would leave half of it
            keep_resolved(setting, resolved)
        final = run_course(setting, stages, resume=args.resume is not None)
        progress.say(f"done: {final}")
    return OK


def _require_same(folder: Path, resolved: dict[str, Any], *, resume: bool) -> None:
    """Refuse to go on under other settings than those that a training was begun with."""
    path = folder / _RESOLVED
    if not resume:
        return
    begun = json.loads(path.read_text(encoding="utf-8"))
    changed = [key for key in resolved if begun.get(key) != json.loads(json.dumps(resolved[key]))]
    if changed:
        raise UsageError(f"{path}: {', '.join(changed)} changed since the training was begun; start it anew")


def _export_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="wfdsl-train export", description="Make a folder for serving.")
    parser.add_argument("folder", metavar="DIR", help="the folder of a training, or of a stage's model")
    parser.add_argument("-o", "--out", required=True, metavar="OUT", help="the folder to make")
    parser.add_argument("--gguf", action="store_true", help="also a GGUF file, with which it runs without torch")
    parser.add_argument("--figures", metavar="FILE.md", help="what the card ends with: how well it does")
    parser.add_argument("--replace", action="store_true", help="take the place of an earlier export")
    return parser


def _export(arguments: Sequence[str]) -> int:
    args = _export_parser().parse_args(arguments)
    try:
        from wfdsl_rl.training.export import Extras, export
    except ModuleNotFoundError as error:
        raise UsageError(f'exporting needs the package {error.name}: pip install "wfdsl[rl]"') from error

    say: Callable[[str], None] = print
    figures = None if args.figures is None else Path(args.figures)
    extras = Extras(gguf=args.gguf, figures=figures, replace=args.replace)
    export(Path(args.folder), Path(args.out), extras, say=say)
    return OK


if __name__ == "__main__":
    sys.exit(main())
