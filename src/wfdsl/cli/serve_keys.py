"""`wfdsl serve keys`: make, list and revoke the API keys of a server."""

from __future__ import annotations

import argparse
from typing import Any

from wfdsl.cli.options import INPUT, add_options, values_of
from wfdsl.cli.output import print_json
from wfdsl.errors import UsageError
from wfdsl.experiment import KeyLimits, ServeSettings
from wfdsl.settings import to_table


def configure_keys(actions: Any) -> None:
    """Add `keys` and its actions."""
    keys = actions.add_parser("keys", help="make, list and revoke API keys; the server need not run")
    inner = keys.add_subparsers(dest="key_action", metavar="ACTION", required=True)
    make = inner.add_parser("make", help="make a key, print it once, and add its hash and its limits to --keys")
    make.add_argument("name", metavar="NAME", help="whose key it is: letters, digits, - and _")
    listing = inner.add_parser("list", help="list the keys with their limits")
    listing.add_argument("--json", action="store_true", help="print a JSON object a line for each key")
    revoke = inner.add_parser("revoke", help="take a key out of --keys; a server that runs refuses it at once")
    revoke.add_argument("name", metavar="NAME", help="whose key it is")
    for each in (make, listing, revoke):
        add_options(each, ServeSettings, "serve", only=["keys"])
    add_options(make, KeyLimits, "key", title=INPUT)


def execute_keys(args: argparse.Namespace, settings: ServeSettings) -> int:
    """Do what the action says."""
    from wfdsl.server.keys import make_key, read_keys, revoke_key

    if settings.keys is None:
        raise UsageError(f"keys {args.key_action} needs --keys FILE: the file that keeps the hashes of the keys")
    if args.key_action == "make":
        print(make_key(settings.keys, args.name, values_of(args, "key")))
    elif args.key_action == "revoke":
        revoke_key(settings.keys, args.name)
    else:
        for name, limits in read_keys(settings.keys).items():
            about = {field: value for field, value in to_table(limits).items() if field != "hash"}
            if args.json:
                print_json({"name": name, **about})
            else:
                print(f"{name:<20}  {_shown(limits)}")
    return 0


def _shown(limits: KeyLimits) -> str:
    parts = [f"since {limits.created}" if limits.created else ""]
    if limits.usd is not None:
        parts.append(f"${limits.usd:g}" + ("" if limits.per == "ever" else f" per {limits.per}"))
    if limits.requests_per_minute is not None:
        parts.append(f"{limits.requests_per_minute} requests per minute")
    if limits.models:
        parts.append(f"models {', '.join(limits.models)}")
    return ", ".join(filter(None, parts))
