"""List, show, check and write pools of workers."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl.cli.display.streams import print_styled, print_utf8
from wfdsl.cli.options import add_action, complete_pools
from wfdsl.cli.output import FAILED, OK, print_json, print_now
from wfdsl.errors import UsageError, WfdslError
from wfdsl.render.status import dollars
from wfdsl.render.text import counted
from wfdsl.settings import closest

if TYPE_CHECKING:  # start-up time
    from wfdsl.protocols import Call, Reply
    from wfdsl.workers.entry import Prices, PriceTier, WorkerEntry
    from wfdsl.workers.pool import Pool

_LIST_S = 30.0
"""What a server may take to list its models, in seconds."""
EXAMPLES = (
    "wfdsl pools check pool.toml",
    "wfdsl pools prices openai:gpt-5-mini",
    "wfdsl pools init --base-url http://localhost:8000/v1 --out pool.toml",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl pools`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    acts = {"list": _list, "show": _show, "check": _check, "prices": _prices, "init": _init}
    made = {name: add_action(actions, name, act) for name, act in acts.items()}
    for command in made.values():
        command.add_argument("--json", action="store_true", help="print JSON")
    for name in ("show", "check"):
        about = "a pool's name, a TOML file, or models"
        complete_pools(made[name].add_argument("pool", metavar="NAME|FILE|MODELS", help=about))
    about = "also try what workflows may need: about ten requests a worker"
    made["check"].add_argument("--deep", action="store_true", help=about)
    made["prices"].add_argument("models", metavar="MODELS", help="such as openai:gpt-5-mini")
    init, about = made["init"], "the environment variable that holds the server's key"
    init.add_argument("--base-url", required=True, metavar="URL", help="such as http://localhost:8000/v1")
    init.add_argument("--model", action="append", default=[], help="only this model; may be repeated")
    init.add_argument("--api-key-env", metavar="VARIABLE", help=about)
    init.add_argument("-o", "--out", metavar="FILE", help="write to this file instead of standard output")


def _list(args: argparse.Namespace) -> int:
    """List the pools that can be used by name."""
    from wfdsl.workers.pool import Pool, pool_names

    names = pool_names()
    for name in names:
        try:
            pool = Pool.load(name)
            workers, description = list(pool.names), pool.settings.description
        except UsageError as error:  # of a plug-in that lacks something
            workers, description = None, str(error)
        if args.json:
            print_json({"name": name, "workers": workers, "description": description})
        else:
            print_styled((name.ljust(max(map(len, names))), "bold"), f"  {description}")
    if not args.json:
        print_styled("\nA pool of your own is a TOML file; `wfdsl pools init --base-url URL` writes one.")
    return OK


def _show(args: argparse.Namespace) -> int:
    """Show the workers of a pool."""
    from wfdsl.workers.pool import Pool

    pool = Pool.load(args.pool)
    plain = {index: pool.entry(index).model_dump(mode="json", exclude_defaults=True) for index in pool.indices}
    if args.json:
        workers = [{"index": index, **about} for index, about in plain.items()]
        print_json({**pool.settings.model_dump(mode="json"), "workers": workers})
        return OK
    print_styled((pool.name, "bold"), f"  {pool.settings.description}")
    for index, about in plain.items():
        print_styled(f"\n{index:>2}  ", (about.pop("name"), "bold"), f"  {about.pop('description', '')}")
        for label, value in (about | {"prices": _price(pool.entry(index))}).items():
            print_styled((f"    {label:<17} ", "dim"), _shown(value))
    return OK


def _shown(value: Any) -> str:
    """A field of an entry in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    return ", ".join(map(_shown, value)) if isinstance(value, list) else " ".join(str(value).split())


def _price(entry: WorkerEntry) -> str:
    if entry.prices is None:
        return "not known"
    dated = f", {entry.prices.as_of}" if entry.prices.as_of else ""
    source = f" ({entry.prices.source}{dated})" if entry.prices.source else ""
    tiers = "".join(f"; above {tier.above:,} input tokens {_usd(tier)}" for tier in entry.prices.tiers)
    return f"{_usd(entry.prices)} per million tokens{tiers}{source}"


def _usd(price: Prices | PriceTier) -> str:
    named = (("cached", price.cached), ("cache write", price.cache_write))
    cached = ", ".join(f"${usd:g} {name}" for name, usd in named if usd is not None)
    return f"${price.input:g} in{f' ({cached})' if cached else ''}, ${price.output:g} out"


def _prices(args: argparse.Namespace) -> int:
    """Show the list prices of models."""
    from wfdsl.workers.pool import listed_entries

    entries = listed_entries(args.models)
    for entry in entries:
        if args.json:
            prices = None if entry.prices is None else entry.prices.model_dump(mode="json")
            print_json({"model": entry.model, "provider": entry.provider, "prices": prices})
        else:
            print_styled((entry.name, "bold"), f"  {_price(entry)}")
    if unknown := [entry.name for entry in entries if entry.prices is None]:
        raise UsageError(
            f"no list price is known for {', '.join(unknown)}; set prices in a pool file: "
            'prices = { input = 1, output = 2, source = "..." }, in US dollars per million tokens'
        )
    return OK


def _check(args: argparse.Namespace) -> int:
    """Send each worker of a pool one small request."""
    from wfdsl.workers.pool import Pool

    pool = Pool.load(args.pool)
    if args.deep:
        _print_bound(pool)

    async def check() -> list[dict[str, Any]]:
        async with pool.open():
            return await asyncio.gather(*(_check_worker(pool, index, deep=args.deep) for index in pool.indices))

    results = asyncio.run(check())
    width = max(map(len, pool.names))
    for result in results:
        if args.json:
            print_json(result)
            continue
        mark = ("ok    ", "green") if result["ok"] else ("failed", "red")
        name, message = (result["name"].ljust(width), "bold"), result["message"]
        print_styled(f"{result['index']:>2}  ", name, "  ", mark, f"  {message}")
        for what, ability in result.get("abilities", {}).items():
            word, style = _ABILITY[ability["ok"]]
            print_styled(f"      {what:<12}", (f"{word:<6}", style), f"  {ability['message']}")
    return OK if all(result["ok"] for result in results) else FAILED


_ABILITY = {True: ("yes", "green"), False: ("no", "red"), None: ("-", "dim")}


def _print_bound(pool: Pool) -> None:
    """Print what a deep check may cost, before it costs anything."""
    from wfdsl.workers.abilities import price_bound

    bounds = [price_bound(entry) for entry in pool]
    usd = [each for _, each in bounds]
    unknown = f" and the cost of {counted(usd.count(None), 'worker')} whose price is not known" if None in usd else ""
    requests = sum(count for count, _ in bounds) + len(pool)
    print_now(f"{requests} requests, which cost at most {dollars(sum(filter(None, usd)))}{unknown}")


async def _check_worker(pool: Pool, index: int, *, deep: bool) -> dict[str, Any]:
    from wfdsl.workers.abilities import abilities_of, asked, quoted

    entry, started = pool.entry(index), time.monotonic()
    found: dict[str, Any] = {"index": index, "name": entry.name, "ok": False}

    async def ask(call: Call) -> Reply:
        return await pool.worker(index)(call)

    try:
        reply = await asked(ask)
    except WfdslError as error:
        meant = await _meant(entry) if getattr(error, "status", None) == 404 else ""
        return {**found, "message": f"{error}{meant}"}
    found |= {"ok": True, "message": f"{quoted(reply)} in {time.monotonic() - started:.1f} s"}
    if deep:
        tried = await abilities_of(entry, pool.worker(index))
        found["abilities"] = {each.name: {"ok": each.ok, "message": each.message} for each in tried}
    return found


async def _meant(entry: WorkerEntry) -> str:
    """The model that was probably meant, after a server does not know one and if it lists any."""
    if entry.provider not in ("openai", "google"):
        return ""
    from wfdsl.workers.openai_api import server_models

    try:
        models = await server_models(entry.model_copy(update={"timeout_s": _LIST_S}))
    except WfdslError:
        return ""
    near = closest(entry.model, models)
    return f'; the server has "{near}"' if near and entry.model not in models else ""


def _init(args: argparse.Namespace) -> int:
    """Write a pool file for the models of an OpenAI-style server."""
    from wfdsl.workers.pool import parse_pool

    toml = partial(json.dumps, ensure_ascii=False)  # of a string; JSON's are the same
    models = dict.fromkeys(args.model) or asyncio.run(_models(args.base_url, args.api_key_env))
    lines = ["[pool]", 'name = "my-pool"', "", "[pool.defaults]", 'provider = "openai"']
    lines.append(f"base_url = {toml(args.base_url)}")
    lines += [f"api_key_env = {toml(args.api_key_env)}"] if args.api_key_env else []
    lines += ["# temperature = 0.2", "# max_tokens = 4096", "# prices = { input = 0, output = 0 }"]
    for model, context in models.items():
        lines += ["", "[[pool.workers]]", f"name = {toml(model)}", f"model = {toml(model)}"]
        lines += ['description = ""  # what a Conductor is told about this worker']
        lines += [] if context is None else [f"options = {{ context = {context} }}  # tokens, as the server says"]
    text = "\n".join(lines) + "\n"
    pool = parse_pool(text, args.out or "the new pool")
    if args.out is None:
        print_utf8(text)
        return OK
    try:
        with Path(args.out).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{args.out} exists; name another file with -o, or remove this one") from None
    if args.json:
        print_json({"file": args.out, "workers": list(pool.names)})
    else:
        print(f"wrote {args.out} with {counted(len(pool), 'worker')}; try: wfdsl pools check {args.out}")
    return OK


async def _models(base_url: str, key_variable: str | None) -> dict[str, int | None]:
    """The models that a server lists, with their contexts in tokens where it says so."""
    from wfdsl.protocols import WorkerFailure
    from wfdsl.workers.openai_api import server_models
    from wfdsl.workers.pool import build_entry

    asked = {"name": "server", "provider": "openai", "model": "any", "base_url": base_url, "timeout_s": _LIST_S}
    entry = build_entry({**asked, "api_key_env": key_variable}, f"--base-url {base_url}")
    try:
        models = await server_models(entry)
    except WorkerFailure as failure:
        raise UsageError(
            f"cannot list the models of {base_url}: {failure}. With --model NAME no list is needed"
        ) from None
    if not models:
        raise UsageError(f"{base_url} lists no models; name one with --model")
    return models
