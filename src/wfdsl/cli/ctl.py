"""See and change the limits of a running server, such as `wfdsl-reward serve`.

Without a change, `limits` prints them and what is used of them; `leases` lists the processes that draw from the server.
A key is read from the environment variable WFDSL_SERVER_KEY, or from the URL (http://any:KEY@HOST:PORT).
"""

from __future__ import annotations

import argparse
from typing import Any, Final

from wfdsl.cli.options import INPUT, OUTPUT, add_options, count, group, server_key
from wfdsl.cli.output import print_json
from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import Budget

EXAMPLES = (
    "wfdsl ctl limits",
    "wfdsl ctl limits --worker gpt-5 --max-concurrency 20 --requests-per-minute 600",
    "wfdsl ctl limits --budget-usd 80 --workflows 256 --server http://node1:8700",
    "wfdsl ctl leases",
)
_URL: Final = "http://127.0.0.1:8700"
_PATIENCE_S: Final = 5.0
_PER_WORKER: Final = {
    "concurrency": ("--max-concurrency", "calls in flight"),
    "requests_per_minute": ("--requests-per-minute", "requests per minute"),
    "tokens_per_minute": ("--tokens-per-minute", "tokens per minute"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl ctl`."""
    parser.add_argument("what", choices=["limits", "leases"], metavar="limits|leases", help="what to see or change")
    asked = group(parser, INPUT)
    asked.add_argument("--server", default=_URL, metavar="URL", help="the server (default: %(default)s)")
    asked.add_argument("--worker", metavar="NAME", help="the worker whose limits are changed")
    for name, (flag, text) in _PER_WORKER.items():
        asked.add_argument(flag, dest=name, type=count, metavar="N", help=f"with --worker: most {text}")
    asked.add_argument("--workflows", type=count, metavar="N", help="most workflows in flight")
    add_options(parser, Budget, "budget", without=["seconds"])
    group(parser, OUTPUT).add_argument("--json", action="store_true", help="print JSON instead of tables")


def execute(args: argparse.Namespace) -> int:
    """Ask the server, and print what it says."""
    from wfdsl.server_client import ServerClient

    changes = _changes(args)
    if args.what == "leases" and changes:
        raise UsageError("leases are only listed: leave the limits out")
    client = ServerClient(args.server, server_key(), patience_s=_PATIENCE_S, timeout_s=_PATIENCE_S)
    try:
        answer = client.request("PATCH" if changes else "GET", f"/v1/{args.what}", changes or None)
    finally:
        client.close()
    if args.json:
        print_json(answer, indent=2)
    elif args.what == "limits":
        _print_limits(answer)
    else:
        _print_leases(answer)
    return 0


def _changes(args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    limits = {name: getattr(args, name) for name in _PER_WORKER if getattr(args, name) is not None}
    if args.worker is not None:
        if not limits:
            raise UsageError(f"--worker needs a limit: {', '.join(flag for flag, _ in _PER_WORKER.values())}")
        found["workers"] = {args.worker: limits}
    elif limits:
        raise UsageError(f"{_PER_WORKER[next(iter(limits))][0]} needs --worker NAME: whose limit it is")
    if args.workflows is not None:
        found["workflows"] = args.workflows
    kept = {key: value for key, (value, _) in getattr(args, "kept", {}).items()}
    budget = {key.removeprefix("budget."): value for key, value in kept.items() if key.startswith("budget.")}
    return {**found, "budget": budget} if budget else found


def _print_limits(limits: dict[str, Any]) -> None:
    from wfdsl.render.status import dollars
    from wfdsl.render.text import counted

    rows = [
        [name, _shown(each["concurrency"]), _now(each), *(_shown(each[key]) for key in list(_PER_WORKER)[1:])]
        for name, each in limits["workers"].items()
    ]
    _print_table(["worker", "calls in flight, most", "now", "requests per minute", "tokens per minute"], rows)
    flying, budget = limits["workflows"], limits["budget"]
    print(f"\nworkflows: {flying['active']} in flight of {flying['limit']:g}, {flying['waiting']} waiting")
    spent, reserved = budget["spent"], budget["reserved"]
    usd = "" if budget["usd"] is None else f" of {dollars(budget['usd'])}"
    counts = [f"{spent[name]}{_of(budget[name])} {name}" for name in ("calls", "tokens")]
    print(f"spent: {dollars(spent['usd'])}{usd}, {', '.join(counts)}")
    if reserved["calls"]:
        more = f"{counted(reserved['calls'], 'call')}, {counted(reserved['tokens'], 'token')}"
        print(f"reserved for calls in flight: {dollars(reserved['usd'])}, {more}")


def _of(limit: int | None) -> str:
    return "" if limit is None else f" of {limit}"


def _now(worker: dict[str, Any]) -> str:
    held = f", held back for {worker['held_s']:.0f} s" if worker["held_s"] else ""
    narrowed = "" if worker["allowed"] == worker["concurrency"] else f" of {worker['allowed']:.0f}"
    return f"{worker['active']}{narrowed}, {worker['waiting']} waiting{held}"


def _print_leases(answer: dict[str, Any]) -> None:
    from wfdsl.render.status import dollars

    rows = [
        [each["holder"], str(each["calls"]), dollars(each["reserved_usd"]), f"{each['expires_in_s']:.0f} s"]
        for each in answer["holders"]
    ]
    if rows:
        _print_table(["holder", "calls in flight", "reserved", "expires in"], rows)
    else:
        print("no process draws leases")


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _shown(limit: float | None) -> str:
    return "-" if limit is None else f"{limit:g}"
