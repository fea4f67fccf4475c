"""LiteLLM, chat completions of a server of OpenAI's shape."""

from __future__ import annotations

from typing import Any

import litellm
from tests.clients.programs.cells import URL
from tests.clients.programs.openai_cells import try_chat

litellm.suppress_debug_info = True


def ask(model: str, **fields: Any) -> Any:
    return litellm.completion(model=f"openai/{model}", api_base=URL, api_key="none", **fields)


try_chat(ask, lambda chunks: chunks.completion_stream.close())
