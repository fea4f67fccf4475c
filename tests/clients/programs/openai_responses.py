"""openai-python, the Responses API."""

from __future__ import annotations

from typing import Any

from openai import OpenAI
from tests.clients.programs.cells import QUESTION, URL
from tests.clients.programs.openai_cells import deltas_of, try_responses

client = OpenAI(base_url=URL, api_key="none")


def ask(model: str, **fields: Any) -> Any:
    return client.responses.create(model=model, **fields)


def stream() -> dict[str, Any]:
    """What its own collector of events makes of the stream."""
    with client.responses.stream(model="two", input=QUESTION) as events:
        heard = list(events)
        return deltas_of(heard) | {"text": events.get_final_response().output_text}


try_responses(ask, stream, lambda events: events.close())
