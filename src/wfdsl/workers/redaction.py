"""What keys look like, and how they are kept out of texts.

Providers quote keys in their error texts, so each text that comes from outside passes a `Scrubber` before it is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any, Final
from urllib.parse import quote

_HIDDEN: Final = "[key hidden]"
# How the known providers' keys begin; also what is left of one that its provider has shortened (sk-ab***yz).
_KEY = re.compile(
    r"\b(?:sk-[A-Za-z0-9_*.\-]{8,}|AIza[0-9A-Za-z_\-]{20,}|gsk_[0-9A-Za-z]{20,}|xai-[0-9A-Za-z]{20,}"
    r"|hf_[0-9A-Za-z]{20,}|nvapi-[0-9A-Za-z_\-]{20,}|r8_[0-9A-Za-z]{20,}|gh[pousr]_[0-9A-Za-z]{20,})"
)
_CREDENTIALS = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}")
# "author" is the one usual word in which "auth" means nothing of the kind.
_SECRET_NAME = re.compile(r"(?i)auth(?!or\b)|key|token|secret|cookie|passw|credential|signature|^(sig|code|pw|pwd)$")
_SHORTEST_SECRET_CHARS: Final = 4


def is_secret_name(name: str) -> bool:
    """Whether an HTTP header or a URL's parameter of this name is likely to carry a secret."""
    return _SECRET_NAME.search(name) is not None


def find_key(value: Any, where: str = "") -> str | None:
    """Where in nested plain data a text looks like a provider's key; None if nowhere."""
    if isinstance(value, str):
        return (where or "the value") if _KEY.search(value) else None
    if isinstance(value, dict):
        parts = [(f"{where}.{key}".lstrip("."), part) for key, part in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{where}[{index}]", part) for index, part in enumerate(value)]
    else:
        return None
    return next((found for name, part in parts if (found := find_key(part, name))), None)


class Scrubber:
    """Replaces secrets in texts: those that it was told, and whatever looks like a provider's key."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        found = set[str]()
        for secret in secrets:  # as it is, and as a JSON text, a URL or a web page quotes it
            if secret and len(secret) >= _SHORTEST_SECRET_CHARS:
                found |= {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), escape(secret)}
        self._secrets = tuple(sorted(found, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return _CREDENTIALS.sub(rf"\1 {_HIDDEN}", _KEY.sub(_HIDDEN, text))
