"""`wfdsl-eval compare`, `strategies` and `report`: what the folders of evaluations say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl.cli.options import count
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from wfdsl_rl.evaluation.report import Report
    from wfdsl_rl.evaluation.summary import Comparison


def configure_compare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl-eval compare`."""
    parser.add_argument("folders", nargs="+", metavar="DIR", help="one folder, or two")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME", help="only these policies")
    parser.add_argument("--against", metavar="NAME", help="the policy to compare with (default: see below)")
    _add_format(parser)
    parser.epilog = (
        "In one folder each policy is compared with the first. Of two folders, each policy of the first is compared "
        "with the policy of the same name in the second; where no name is in both, with every one."
    )


def execute_compare(args: argparse.Namespace) -> int:
    """Print paired comparisons."""
    from wfdsl_rl.cli.eval_printing import print_table
    from wfdsl_rl.evaluation.report import read_report
    from wfdsl_rl.evaluation.tables import COMPARED, comparison_table

    if len(args.folders) > 2:
        raise UsageError(f"{len(args.folders)} folders: give one, or two")
    reports = [read_report(Path(folder)) for folder in args.folders]
    found = _comparisons(reports[0], reports[-1], args)
    if args.format == "json":
        print(json.dumps([each.to_dict() for each in found], ensure_ascii=False, indent=2))
        return 0
    against = {each.second for each in found}
    title = f"against {found[0].second}" if len(against) == 1 else ""
    print_table(*comparison_table(found), title=", ".join(filter(None, [title, _marked(*reports)])))
    print(f"\n{COMPARED}")
    return 0


def configure_strategies(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl-eval strategies`."""
    parser.add_argument("folder", metavar="DIR", help="the folder of an evaluation")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME", help="only these policies")
    parser.add_argument(
        "--patterns", type=count, default=5, metavar="N", help="the most frequent workflows to show (default: 5)"
    )
    parser.add_argument("--no-plots", action="store_true", help="write no plots")
    _add_format(parser)


def execute_strategies(args: argparse.Namespace) -> int:
    """Print what workflows look like, and draw it."""
    from wfdsl_rl.cli.eval_printing import print_table
    from wfdsl_rl.evaluation.plots import draw_strategies
    from wfdsl_rl.evaluation.report import read_report
    from wfdsl_rl.evaluation.tables import strategy_table
    from wfdsl_rl.strategies import STRUCTURE_RULES, WORDING_RULES

    report = read_report(Path(args.folder))
    chosen = _chosen(report, args.policy)
    found = {name: each for name, each in report.strategies(patterns=args.patterns).items() if name in chosen}
    if not args.no_plots:
        draw_strategies(found, report.folder, simulated=report.simulated)
    if args.format == "json":
        rules = {"by_structure": STRUCTURE_RULES, "by_wording": WORDING_RULES}
        plain = {"simulated": report.simulated, "rules": rules}
        print(json.dumps({**plain, "policies": {name: each.to_dict() for name, each in found.items()}}, indent=2))
        return 0
    print_table(*strategy_table(found), title=_marked(report))
    for name, each in found.items():
        print(f"\n{name}")
        print("\n".join(f"  {pattern.count:>6,}  {pattern.text}" for pattern in each.patterns))
    print("\nroles by structure: " + "; ".join(f"{role}: {rule}" for role, rule in STRUCTURE_RULES.items()))
    print("roles by wording: a word of the subtask; --format json lists the expressions")
    return 0


def configure_report(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl-eval report`."""
    parser.add_argument("folder", metavar="DIR", help="the folder of an evaluation")
    parser.add_argument("--no-plots", action="store_true", help="write no plots")
    _add_format(parser)


def execute_report(args: argparse.Namespace) -> int:
    """Write summaries and plots anew, and print the table."""
    from wfdsl_rl.cli.eval_printing import print_summary
    from wfdsl_rl.evaluation.report import read_report, write_summaries

    report = read_report(Path(args.folder))
    written = write_summaries(report, plots=not args.no_plots)
    summary = report.summary()
    if args.format == "json":
        print(json.dumps(summary.to_dict(), ensure_ascii=False, indent=2))
    else:
        print_summary(summary)
    print(f"written: {', '.join(path.name for path in written)}", file=sys.stderr)
    return 0


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=["text", "json"], default="text", help="what is printed")


def _comparisons(first: Report, second: Report, args: argparse.Namespace) -> list[Comparison]:
    from wfdsl_rl.evaluation.estimates import difference_of
    from wfdsl_rl.evaluation.summary import Comparison

    pairs = _pairs(first, second, _chosen(first, args.policy), args.against)
    if not pairs:
        raise UsageError(f"{first.folder} has only one policy: give a second folder to compare it with")
    names = (first.folder.name, second.folder.name) if first is not second else ("", "")
    return [
        Comparison(
            first=_placed(one, names[0]),
            second=_placed(other, names[1]),
            difference=difference_of(first.of(one), second.of(other)),
        )
        for one, other in pairs
    ]


def _pairs(first: Report, second: Report, chosen: list[str], against: str | None) -> list[tuple[str, str]]:
    if against is not None:
        _chosen(second, [against])
        return [(one, against) for one in chosen if first is not second or one != against]
    if first is second:
        reference = first.policies[0]
        return [(one, reference) for one in chosen if one != reference]
    same = [(one, one) for one in chosen if one in second.policies]
    return same or [(one, other) for one in chosen for other in second.policies]


def _chosen(report: Report, names: list[str]) -> list[str]:
    for name in names:
        if name not in report.policies:
            raise UsageError(f"{report.folder} has no policy {name!r}; it has {', '.join(report.policies)}")
    return list(names or report.policies)


def _placed(policy: str, folder: str) -> str:
    return f"{policy} ({folder})" if folder else policy


def _marked(*reports: Any) -> str:
    return "simulated workers" if any(report.simulated for report in reports) else ""
