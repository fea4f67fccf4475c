"""What the scripts of this folder share: evaluate or train, and print the paper's figures beside ours."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from wfdsl.cli.main import main as wfdsl
from wfdsl.cli.output import FAILED, OK, ended
from wfdsl.evaluation.report import Report, markdown_table, read_report
from wfdsl.evaluation.statistics import difference_of
from wfdsl.render.status import dollars

HERE = Path(__file__).parent
GYM = "gym/seven"
HEAD = ("calls", "tokens", "cost of 1,000", "valid", "further rounds", "kept", "same answer again")


@dataclass(frozen=True)
class Training:
    """A training on the gym, and the preset of the paper's."""

    layers: int
    sft: int
    grpo: int
    every: int
    preset: str = "paper-7b"

    def folder(self, out: Path) -> Path:
        """The folder of the training, which is made or continued."""
        from wfdsl_rl.gym.headline import train, write_start  # noqa: PLC0415  (only trainings need torch)

        start = out / "start"
        write_start(start, layers=self.layers, max_steps=1)
        settings = [f"train.model={start / 'model'}", f"train.stages.sft.rows={start / 'sft.jsonl'}"]
        sft = train("gym-sft", out / "sft", [*settings, f"train.stages.sft.max_steps={self.sft}"])["sft"]
        fewer = ["train.stages.base.prompts_per_step=12", f"train.stages.base.max_steps={self.grpo}"]
        train("gym", out / "grpo", [f"train.model={sft}", *fewer])
        return out / "grpo"

    def table(self, folder: Path) -> str:
        """What a training wrote over its iterations, in Markdown."""
        from wfdsl_rl.training.strategies import HEAD, strategies_of  # noqa: PLC0415

        found = strategies_of(folder, every=self.every)[-1]
        return "\n\n".join([markdown_table(HEAD, [window.row for window in found.windows]), *found.lines])


@dataclass(frozen=True)
class Table:
    """One table of the paper."""

    name: str
    title: str
    measure: str
    """What the paper's figures are."""
    rows: tuple[tuple[str, str, str], ...]
    """What it is, our policy for it, and the paper's figure. In a policy, {conductor} is the Conductor, {strong} and
    {planner} are two workers, {validation} are the tasks that routers are fitted on, and {here} is this folder."""
    differs: str
    """What is not as in the paper, and why."""
    limit: int = 200
    options: tuple[str, ...] = ()
    """Of `wfdsl eval`, on the gym."""
    training: Training | None = None
    """The training that the table is about; its model is the Conductor."""

    def run(self) -> int:
        """What the script does; its exit code."""
        return ended("reproduce", lambda: self._made(self._arguments()), on_interrupt="repeat it to continue")

    def _made(self, args: argparse.Namespace) -> int:
        out, gym = Path(args.out or f"reproduce/{self.name}"), args.pool == GYM
        if self.training is not None and not gym:
            from wfdsl_rl.cli.train import main as wfdsl_train  # noqa: PLC0415

            return wfdsl_train([self.training.preset, "--dry-run"])
        conductor = args.conductor or (GYM if gym else "openai:gpt-5")
        if self.training is not None and not args.dry_run:
            out.mkdir(parents=True, exist_ok=True)
            folder = args.training or self.training.folder(out / "training")
            (out / "training.md").write_text(self.training.table(folder), encoding="utf-8")
            conductor = str(folder / "base" / "final")
        words = ["eval", "--pool", args.pool, "--tasks", args.tasks or (GYM if gym else "math500"), "--no-plots"]
        words += ["--limit", str(args.limit), *(self.options if gym else ())]
        strong, planner = ("alder", "larch") if gym else ("gpt-5", "gemini-2.5-pro")
        names = {"conductor": conductor, "strong": strong, "planner": planner, "here": str(HERE)}
        names["validation"] = f"{GYM}@train" if gym else args.validation
        words += [word for _, policy, _ in self.rows for word in ("--policy", policy.format(**names))]
        if args.dry_run and self.training is not None:
            print(f"a training of {self.training.grpo} iterations is done first, for nothing; here {GYM} is its model")
        if args.dry_run or not gym:
            code = wfdsl([*words, "--dry-run"])
            if args.dry_run or code or not agreed(args.budget_usd):
                return code
            words += ["--budget-usd", str(args.budget_usd)]
        code = evaluated(words, out)
        if code in {OK, FAILED}:  # else it is not done: some policies may have no trial
            print(self.text(out))
        return code

    def _arguments(self) -> argparse.Namespace:
        parser = argparse.ArgumentParser(description=self.title)
        parser.add_argument("--out", help=f"the folder of results (default: reproduce/{self.name})")
        parser.add_argument("--pool", default=GYM, help="the workers: paper, or a pool file (default: %(default)s)")
        parser.add_argument("--tasks", help="the questions (default: the gym's; math500 for other pools)")
        parser.add_argument("--validation", default="math@train", help="what routers of other pools are fitted on")
        parser.add_argument("--conductor", help="the model (default: gym/seven; openai:gpt-5 for other pools)")
        parser.add_argument("--limit", type=int, default=self.limit, help="questions (default: %(default)s)")
        parser.add_argument("--budget-usd", type=float, default=20, help="the most to spend (default: %(default)s)")
        parser.add_argument("--dry-run", action="store_true", help="ask nothing; print what it would cost at most")
        parser.add_argument("--training", type=Path, help="the folder of a training (default: train one)")
        return parser.parse_args()

    def text(self, folder: Path) -> str:
        """The table of the results in a folder, in Markdown."""
        report = read_report(folder)
        rows = zip(self.rows, report.policies, strict=True)
        cells = [[what, theirs, *_figures(report, policy)] for (what, _, theirs), policy in rows]
        head = ["", f"paper: {self.measure}", "here", "minus the first", *HEAD]
        shown = [at for at in range(len(head)) if any(line[at] != "-" for line in cells)]
        count, name = report.manifest["tasks"]["count"], report.manifest["tasks"]["sources"][0]
        about = f"Here: per cent of {count} questions of {name} with 95 % intervals, paired by question. {self.differs}"
        over = [(folder / "training.md").read_text(encoding="utf-8")] if self.training is not None else []
        table = markdown_table([head[at] for at in shown], [[line[at] for at in shown] for line in cells])
        return "\n\n".join([f"## {self.title}", *over, table, about]) + "\n"


def agreed(usd: float) -> bool:
    """Whether so much may be spent."""
    print(f"Spend at most ${usd:g}? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def evaluated(words: list[str], out: Path) -> int:
    """Evaluate, or continue; the exit code."""
    if (out / "manifest.json").is_file():
        return wfdsl(["eval", "--resume", str(out), "--quiet"])
    return wfdsl([*words, "--out", str(out)])


def _figures(report: Report, policy: str) -> list[str]:
    """What is known of a policy, in the order of the head."""
    trials, first = report.of(policy), report.of(report.policies[0])
    summary = next(each for each in report.summary().policies if each.policy == policy)
    signs, value, error = report.signatures()[policy], summary.overall.value or 0.0, summary.overall.error or 0.0
    found = None if policy == report.policies[0] else difference_of(trials, first)
    ran = [trial for trial in trials if trial.rounds and any(len(each.rounds) > 1 or each.kept for each in trials)]
    return [
        f"{value:.1%} ± {1.96 * error:.1%}".replace("%", ""),
        "-" if found is None else f"{100 * found.value:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})",
        f"{summary.calls:.2f}",
        f"{summary.tokens:,.0f}",
        "-" if summary.list_usd is None else dollars(1000 * summary.list_usd),
        "-" if signs.valid is None else f"{signs.valid:.1%}",
        f"{sum(len(trial.rounds) - 1 for trial in ran) / len(ran):.2f}" if ran else "-",
        f"{sum(trial.kept > 0 for trial in ran) / len(ran):.0%}" if ran else "-",
        "-" if signs.unchanged is None else f"{signs.unchanged:.0%}",
    ]
