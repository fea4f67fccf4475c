"""Models by name instead of a pool file: `PROVIDER:MODEL`, several of them with commas, each with `@URL` if need be.

`openai:gpt-5,openai:gpt-5-mini` is a pool of two workers, `openai:llama3@http://localhost:11434/v1` one on a server of
your own. As for OpenAI's own client, the environment variable OPENAI_BASE_URL names the server of models without one.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.settings import build_model
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.list_prices import with_list_prices
from wfdsl.workers.registry import check_provider

_NOT_BY_NAME: Final = ("conductor", "function", "scripted")
_MODELS: Final = re.compile(r"[A-Za-z][\w-]*:")
_SERVER: Final = re.compile(r"(.+?)@(https?://.+)", re.DOTALL)


def lists_models(text: str) -> bool:
    """Whether this is a list of models, not a pool's name."""
    return _MODELS.match(text) is not None


def listed_entries(text: str) -> list[WorkerEntry]:
    """The entries of a list of models.

    Raises:
        UsageError: a provider is not known, or an item is not of the form PROVIDER:MODEL.
    """
    entries: list[WorkerEntry] = []
    for item in text.split(","):
        entry = entry_of_model(item.strip())
        same = sum(each.model == entry.model for each in entries)
        entries.append(entry.model_copy(update={"name": f"{entry.name}#{same + 1}"}) if same else entry)
    return entries


def entry_of_model(text: str, **fields: Any) -> WorkerEntry:
    """The entry of `PROVIDER:MODEL` or `PROVIDER:MODEL@URL`; `fields` are further fields of an entry.

    Raises:
        UsageError: the provider is not known, or it is not of this form.
    """
    provider, _, model = text.partition(":")
    if not model or provider in _NOT_BY_NAME:
        raise UsageError(f"{text!r} does not name a model: write PROVIDER:MODEL, such as openai:gpt-5")
    found = _SERVER.fullmatch(model)
    model, url = found.groups() if found else (model, None)
    check_provider(WorkerEntry(name=model, provider=provider))
    plain = {"name": model, "provider": provider, "model": model, **_server(provider, url), **fields}
    return with_list_prices(build_model(WorkerEntry, plain, repr(text)))


def _server(provider: str, url: str | None) -> dict[str, Any]:
    """Where a model is asked, and with which key. A key of OpenAI goes to no other server, unless its user says so."""
    if url is not None or provider != "openai":
        return {"base_url": url}
    chosen = os.environ.get("OPENAI_BASE_URL", "").strip() or None
    key = "OPENAI_API_KEY" if os.environ.get("OPENAI_API_KEY", "").strip() else None
    return {"base_url": chosen, "api_key_env": key if chosen else None}
