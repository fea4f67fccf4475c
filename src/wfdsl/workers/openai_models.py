"""Which models an OpenAI-style server offers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai

from wfdsl.redaction import Scrubber
from wfdsl.workers.http_body import read_object
from wfdsl.workers.http_failure import with_failures
from wfdsl.workers.keys import read_key
from wfdsl.workers.openai_api import OPENAI_URL, openai_client
from wfdsl.workers.plain_json import mappings, text

if TYPE_CHECKING:
    from wfdsl.workers.pool import WorkerEntry


async def server_models(entry: WorkerEntry) -> list[str]:
    """The names of the server's models, sorted.

    Raises:
        WorkerFailure: the server does not say.
        UsageError: the key is missing.
    """
    key = read_key(entry, None)
    errors = (openai.APIStatusError, openai.OpenAIError)
    async with openai_client(entry, entry.base_url or OPENAI_URL, key, dict(entry.headers)) as client:
        body = await with_failures(_list(client), errors, Scrubber([key]))
    return sorted(filter(None, (text(model.get("id")) for model in mappings(body.get("data")))))


async def _list(client: openai.AsyncOpenAI) -> dict[str, Any]:
    async with client.models.with_streaming_response.list() as response:
        return await read_object(response)
