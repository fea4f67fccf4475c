"""openai-python, chat completions."""

from __future__ import annotations

from typing import Any

from openai import OpenAI
from tests.clients.programs.cells import URL
from tests.clients.programs.openai_cells import try_chat

client = OpenAI(base_url=URL, api_key="none")


def ask(model: str, **fields: Any) -> Any:
    return client.chat.completions.create(model=model, **fields)


try_chat(ask, lambda chunks: chunks.close())
