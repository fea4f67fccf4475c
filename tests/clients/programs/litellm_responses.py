"""LiteLLM, the Responses API of a server of OpenAI's shape."""

from __future__ import annotations

from typing import Any

import litellm
from tests.clients.programs.cells import QUESTION, URL
from tests.clients.programs.openai_cells import deltas_of, try_responses

litellm.suppress_debug_info = True
STREAMS: dict[str, Any] = {"litellm_provider": "openai", "mode": "responses", "supports_native_streaming": True}
# It asks models that it does not know without a stream, and cuts the whole answer into pieces.
litellm.register_model({f"openai/{model}": STREAMS for model in ("two", "slow", "broken")})
REMARK = "once its registry has the model"


def ask(model: str, **fields: Any) -> Any:
    return litellm.responses(model=f"openai/{model}", api_base=URL, api_key="none", **fields)


def stream() -> dict[str, Any]:
    return {**deltas_of(ask("two", input=QUESTION, stream=True)), "remark": REMARK}


try_responses(ask, stream, lambda events: events.response.close(), remark=REMARK)
