"""API keys: a file with the hash of each, which `wfdsl serve --new-key NAME` adds to."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from wfdsl.errors import UsageError
from wfdsl.server.api_errors import NO_RETRY, ApiError

_PREFIX: Final = "wfdsl-"
_PRIVATE: Final = 0o600


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class ApiKeys:
    """The keys that are accepted, by their hashes. Keys are long and random, so a plain hash tells nothing of them."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` are the names of the keys by their hashes."""
        self._names = dict(names)

    @classmethod
    def load(cls, path: str) -> ApiKeys:
        """The keys of a file: a line `NAME HASH` for each; lines that begin with # are comments.

        Raises:
            UsageError: it cannot be read, or holds no key.
        """
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: cannot read the keys: {getattr(error, 'strerror', None) or error}") from error
        rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
        for row in rows:
            if len(row) != 2 or len(row[1]) != hashlib.sha256().digest_size * 2:
                raise UsageError(f"{path}: a line must be a name and a hash; wfdsl serve --new-key NAME writes one")
        if not rows:
            raise UsageError(f"{path}: holds no key; add one with: wfdsl serve --keys {path} --new-key NAME")
        return cls({digest: name for name, digest in rows})

    def owner(self, authorization: str | None) -> str:
        """The name of the key of a request.

        Raises:
            ApiError: it has none, or one that is not accepted.
        """
        scheme, _, key = (authorization or "").partition(" ")
        name = self._names.get(_hash(key.strip())) if scheme.lower() == "bearer" else None
        if name is None:
            what = "the API key is not accepted" if key else "send an API key: Authorization: Bearer KEY"
            raise ApiError(401, what, code="invalid_api_key", headers={"www-authenticate": "Bearer", **NO_RETRY})
        return name


def add_key(path: str, name: str) -> str:
    """Make a key and add its hash to a file; the key, which is not kept anywhere.

    Raises:
        UsageError: the name cannot be used, or the file cannot be written.
    """
    if not name.isprintable() or len(name.split()) != 1 or name.startswith("#"):
        raise UsageError(f"--new-key {name!r}: must be one word")
    if Path(path).exists() and name in [line.split()[0] for line in Path(path).read_text("utf-8").splitlines() if line]:
        raise UsageError(f"{path}: there is a key {name!r} already; remove its line first")
    key = _PREFIX + secrets.token_urlsafe(32)
    try:
        file = Path(path)
        file.touch(_PRIVATE)
        with file.open("a", encoding="utf-8") as out:
            out.write(f"{name} {_hash(key)}\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    return key


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()
