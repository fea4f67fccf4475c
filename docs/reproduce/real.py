"""Three models of one key, alone, in a vote, in workflows and under a prompted Conductor, for at most $5."""

import argparse
from pathlib import Path

from reproduce import HERE, agreed, evaluated

from wfdsl import Pool
from wfdsl.cli.main import main as wfdsl
from wfdsl.evaluation.equal_cost import EQUAL_COST, equal_cost_table, standings_in
from wfdsl.evaluation.report import accuracy_table, cost_table, markdown_table, read_report

MODELS = "openai:gpt-5-mini,openai:gpt-4.1-mini,openai:gpt-5-nano"
WORKFLOWS = [str(HERE.parent / "examples" / f"{name}.wf") for name in ("plan-solve-verify", "debate")]


def page(folder: Path) -> str:
    """Everything in one page: the summary, equal cost, and each run with its id in the journal."""
    report = read_report(folder)
    title, summary = f"# {len(report.manifest['tasks']['ids'])} questions", report.summary()
    found = [markdown_table(*accuracy_table(summary)), markdown_table(*cost_table(summary))]
    cost = markdown_table(*equal_cost_table(standings_in([report])))
    runs = [[each.run_id, each.policy, each.task, each.outcome, f"{each.paid_usd or 0:.4f}"] for each in report.trials]
    journal = markdown_table(["run", "policy", "task", "outcome", "dollars"], runs)
    parts = [title, *(["Workers are simulated."] * report.simulated), *found, "## At equal cost", cost]
    parts += [EQUAL_COST, "## Every run", "`wfdsl runs show RUN --json` shows its messages.", journal]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Evaluate and write the page; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pool", default=MODELS, help="the models (default: %(default)s)")
    parser.add_argument("--tasks", action="append", help="questions (default: 60 of MATH-500 and MMLU)")
    parser.add_argument("--out", type=Path, default=Path("real"))
    args = parser.parse_args()
    conductor = Pool.load(args.pool).names[0]
    words = ["eval", "--pool", args.pool, "--limit", "60", "--no-plots"]
    words += [word for task in args.tasks or [str(HERE / "questions.jsonl")] for word in ("--tasks", task)]
    policies = ("workers", "majority-vote:n=3", *WORKFLOWS, f"{conductor}:max_rounds=0")
    words += [word for policy in policies for word in ("--policy", policy)]
    code = wfdsl([*words, "--dry-run"])
    if code or not agreed(5):
        return code
    code = evaluated([*words, "--budget-usd", "5"], args.out)
    if code != 2:
        (args.out / "page.md").write_text(page(args.out), encoding="utf-8")
        print(f"the page is {args.out / 'page.md'}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
