"""Accuracy at equal cost: all baselines and the Conductor at each effort, on questions that nothing was chosen on.

Run with `python -m tests.benchmarks equal_cost`, or `python -m tests.benchmarks.bench_equal_cost PRESET [OPTION]...`.
It is `wfdsl eval` with the policies below, and `wfdsl eval equal-cost` on its folder. All of it is simulated: nothing
here measures a real model.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.evaluation.toys import wfdsl_eval
from wfdsl.evaluation.baselines.fitted import write_fit_costs
from wfdsl.evaluation.baselines.validation import FitCost
from wfdsl.evaluation.equal_cost import cost_in_usd, rival_of
from wfdsl.evaluation.report import EQUAL_COST, UNKNOWN, equal_cost_table, markdown_table, read_report, standings_in
from wfdsl.evaluation.statistics import scores_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wfdsl.evaluation.equal_cost import Rival, Scores, Standing
    from wfdsl.evaluation.report import Report

PRESET = "gym/axes"
SERIES, LIMIT = 90_210, 600
"""A series of questions that no training, search or choice has used; how many of them."""
PRICES = "0/0.01/0.02"
"""What a further call has to be worth, in shares of right answers."""
POLICIES = (
    "workers",
    "majority-vote:worker=each,n=2/4/8/16",
    "long-context",
    "self-reflection",
    "consensus",
    "moa",
    "debate",
    "planner-executor-verifier",
    "tree-of-agents",
    "random-workflow",
    "random-router",
    "best-worker-router",
    "smoothie-independent",
    "smoothie-dependent",
    "knn-router",
    f"cascade-router:call_price={PRICES}",
    "routerdc",
    f"best-fixed:call_price={PRICES}",
    f"best-fixed-by-kind:by=family,search_calls=120000,call_price={PRICES}",
)
MORE = {
    "gym/paper7": (f"best-fixed-by-kind:call_price={PRICES}",),
    "gym/axes": (str(Path(__file__).with_name("axes-constant.wf")),),
}
"""What one preset has: there kinds of questions are domains; the best workflow for all that a long search found."""
SEARCHED = {"axes-constant": FitCost(calls=2_000_000, usd=None)}
"""What that search has taken, as the file says; its dollars were not counted."""
CONDUCTORS = {"gym/paper7": "gym/tiny", "gym/axes": "gym/tiny-axes@each"}
"""The Conductor that was trained for a preset; others are named with --conductor."""


def main(arguments: Sequence[str] = ()) -> None:
    args = _parser().parse_args(arguments)
    conductor = args.conductor or CONDUCTORS.get(args.preset, "")
    folders = [Path(folder) for folder in args.folder]
    if not folders:
        folders = [Path(f"equal-cost-{args.preset.replace('/', '-')}-{args.series}")]
        evaluate(args, folders[0], conductor)
    print(report_of([read_report(folder) for folder in folders], conductor))


def evaluate(args: argparse.Namespace, folder: Path, conductor: str) -> None:
    """Evaluate all policies, or continue where it was interrupted."""
    begin = ["--resume", str(folder)] if (folder / "manifest.json").exists() else ["--out", str(folder)]
    options = ["--tasks", args.preset, "--pool", args.preset, "--limit", str(args.limit), "--parallel", "64"]
    asked = [*POLICIES, *MORE.get(args.preset, ()), *args.policy, *([conductor] if conductor else [])]
    policies = [word for name in asked for word in ("--policy", name)]
    code = wfdsl_eval([*begin, *options, "--sample-seed", str(args.series), "--no-journal", *policies])
    if code:
        sys.exit(code)
    write_fit_costs(folder, {name: cost for name, cost in SEARCHED.items() if name in read_report(folder).policies})


def report_of(reports: Sequence[Report], conductor: str) -> str:
    """The table, and what it says of the Conductor, as Markdown."""
    summary, standings = standings_in(reports)
    few = shown(standings, reports[0].workers.values())
    head, rows = equal_cost_table(few, in_usd=cost_in_usd(summary.policies))
    own = {each.policy: each.cost for each in standings if conductor and same_checkpoint(each.policy, conductor)}
    scores = {name: scores_of(report.of(name)) for report in reports for name in report.policies}
    said = [said_of(name, rival_at_cost(name, own, standings, scores)) for name in own]
    questions = f"{summary.policies[0].overall.tasks:,} questions of `{reports[0].manifest['pool']['name']}`"
    rows = [[f"`{name}`", *figures, others if others == UNKNOWN else f"`{others}`"] for name, *figures, others in rows]
    table = markdown_table(head, rows)
    return "\n\n".join([f"{questions}; simulated workers.", table, *left_out(standings, few), EQUAL_COST, *said])


def shown(standings: Sequence[Standing], workers: Iterable[str]) -> list[Standing]:
    """All but the votes of workers that are neither the best two alone nor on the frontier."""
    alone = alone_of(standings)
    best = sorted(workers, key=lambda name: -alone.get(name, 0.0))[:2]
    return [each for each in standings if each.efficient or vote_of(each) in (None, *best)]


def left_out(standings: Iterable[Standing], few: Sequence[Standing]) -> list[str]:
    """Whose votes are not among the few that are shown, in a sentence; nothing if all are."""
    counts: dict[str, list[str]] = defaultdict(list)
    for each in standings:
        if each not in few:
            counts[vote_of(each) or each.policy].append(each.policy.rpartition("n=")[2])
    named = "; ".join(f"`{worker}` (n = {', '.join(sorted(found, key=int))})" for worker, found in counts.items())
    return [f"Left out, as not on the frontier: the votes of {named}."] if named else []


def alone_of(standings: Iterable[Standing]) -> dict[str, float]:
    """The accuracy of each worker alone, by its name."""
    found = {each.policy.partition("worker:")[2]: each.accuracy.value for each in standings}
    return {name: value for name, value in found.items() if name}


def vote_of(each: Standing) -> str | None:
    """Whose votes are counted; None if it is no majority vote of a worker."""
    found = re.match(r"majority-vote:.*worker=([^,]+)", each.policy)
    return None if found is None else found.group(1)


def same_checkpoint(policy: str, conductor: str) -> bool:
    """Whether a policy is the Conductor, at any effort."""
    return policy.partition("@")[0] == conductor.partition("@")[0]


def rival_at_cost(
    name: str, own: Mapping[str, float], standings: Iterable[Standing], scores: Mapping[str, Scores]
) -> Rival | None:
    """The best of the others that cost no more; the Conductor at its other efforts is not one of them."""
    costs = {each.policy: each.cost for each in standings if each.policy == name or each.policy not in own}
    return rival_of(name, costs, {policy: scores[policy] for policy in costs})


def said_of(name: str, rival: Rival | None) -> str:
    """Whether a policy is above all others at its cost, in a sentence."""
    if rival is None:
        return f"`{name}` has no rival at its cost."
    value, low, high = 100 * rival.difference.value, 100 * rival.difference.low, 100 * rival.difference.high
    sign = "above" if low > 0 else "below" if high < 0 else "level with"
    return f"`{name}` is {sign} all others at no more cost: {value:+.1f} points ({low:+.1f} to {high:+.1f})."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", nargs="?", default=PRESET)
    parser.add_argument("--conductor", help="such as FOLDER@each: a checkpoint at each effort")
    parser.add_argument("--policy", action="append", default=[], help="a further policy")
    parser.add_argument("--limit", type=int, default=LIMIT)
    parser.add_argument("--series", type=int, default=SERIES)
    parser.add_argument("--folder", action="append", default=[], help="read this evaluation instead of making one")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
