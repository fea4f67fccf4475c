"""Hooks of schemathesis: most requests name a model that is there and ask something, so that other fields decide."""

from __future__ import annotations

import random
from typing import Any

import schemathesis

_random = random.Random(0)
_ASKED = {"messages": [{"role": "user", "content": "Why?"}], "input": "Why?"}


@schemathesis.hook  # type: ignore[untyped-decorator]
def map_body(context: Any, body: Any) -> Any:
    """Change a body that was generated."""
    if not isinstance(body, dict) or _random.random() < 0.2:
        return body
    asked = {name: value for name, value in _ASKED.items() if name in body and _random.random() < 0.7}
    kept = {name: value for name, value in body.items() if name in ("model", *_ASKED) or _random.random() < 0.5}
    return {**kept, **asked, "model": "two"}
