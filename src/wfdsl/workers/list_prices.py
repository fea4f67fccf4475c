"""List prices of models, from the package genai-prices: nothing is fetched, a newer package has newer prices."""

from __future__ import annotations

import datetime as dt
import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from wfdsl.workers.entry import Prices, PriceTier, WorkerEntry

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

FREE: Final = Prices(input=0.0, output=0.0, source="runs on this machine")
_PROVIDERS: Final = ("openai", "anthropic", "google")
_CHECKED: Final = re.compile(r"(?:verified on|checked on|as of) (\d{4}-\d{2}-\d{2})")
"""How the package says when it looked at a price; of most models it says nothing."""


def with_list_prices(entry: WorkerEntry) -> WorkerEntry:
    """The entry, with the list prices of its model where it has none of its own and they are known."""
    found = entry.prices or list_prices(entry.provider, entry.model, entry.base_url)
    return entry if found is entry.prices else entry.model_copy(update={"prices": found})


def list_prices(provider: str, model: str, base_url: str | None = None) -> Prices | None:
    """What a model costs today at its provider, or at the server that `base_url` names; None: not known."""
    if provider == "local":
        return FREE
    if provider not in _PROVIDERS or not model:
        return None
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  (0.25 s of start-up)

    where = (provider, None) if base_url is None else (None, base_url)
    try:
        _, known = get_snapshot().find_provider_model(model, None, *where)
    except LookupError:
        return None
    return _prices(known.get_prices(dt.datetime.now(dt.UTC)), known.price_comments or "")


def _prices(price: ModelPrice, comments: str) -> Prices | None:
    """The prices of tokens; None where there are none, or each request costs something besides."""
    keys = {"input": "input", "output": "output", "cached": "cache_read", "cache_write": "cache_write"}
    listed = {name: getattr(price, f"{key}_mtok", None) for name, key in keys.items()}
    if listed["input"] is None or listed["output"] is None or getattr(price, "requests_kcount", None):
        return None
    starts = sorted({tier.start for each in listed.values() for tier in getattr(each, "tiers", ())})
    tiers = tuple(PriceTier(above=start, **_at(listed, start + 1)) for start in starts)
    day = max(map(dt.date.fromisoformat, _CHECKED.findall(comments)), default=None)
    return Prices(**_at(listed, 0), tiers=tiers, source=f"genai-prices {version('genai-prices')}", as_of=day)


def _at(listed: dict[str, Any], input_tokens: int) -> dict[str, Any]:
    """The prices of a request with this many input tokens."""
    found: dict[str, Any] = {}
    for name, each in listed.items():
        price = getattr(each, "base", each)
        for tier in getattr(each, "tiers", ()):
            price = tier.price if input_tokens > tier.start else price
        found[name] = None if price is None else float(price)
    return found
