"""API keys: a TOML file with the hash and the limits of each, which `wfdsl serve keys` writes."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import secrets
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple

from wfdsl.config import from_table, to_table
from wfdsl.errors import UsageError
from wfdsl.experiment import KeyLimits
from wfdsl.server.api_errors import NO_RETRY, ApiError
from wfdsl.toml_file import read_toml_file, require_table

_log = logging.getLogger(__name__)
_PREFIX: Final = "wfdsl-"
_PRIVATE: Final = 0o600
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # a bare key of TOML


class Caller(NamedTuple):
    """Who asks."""

    name: str = ""
    """The name of the key; empty where no keys are needed."""
    limits: KeyLimits | None = None
    """What the key may do; None: everything."""

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it may name; empty: all of them."""
        return () if self.limits is None else self.limits.models


def require_model(model: str, allowed: tuple[str, ...]) -> None:
    """Refuse a model that a key may not name; without names, all models are allowed.

    Raises:
        ApiError: it is not one of them.
    """
    if allowed and model not in allowed:
        what = f"this key is not for the model {model!r} (models: {', '.join(allowed)})"
        raise ApiError(403, what, code="model_not_allowed", param="model", headers=NO_RETRY)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def keys_for(host: str, path: str | None) -> ApiKeys | None:
    """The keys of a file, which an address that others reach needs; None: everyone who reaches the server is answered.

    Raises:
        UsageError: there is no file although others reach the address, or it cannot be used.
    """
    if path is None and not is_loopback(host):
        raise UsageError(f"--host {host} needs --keys FILE: others reach it, and every request costs money")
    return None if path is None else ApiKeys.load(path)


class ApiKeys:
    """The keys that are accepted, by their hashes. Keys are long and random, so a plain hash tells nothing of them.

    The file is read again when it has changed, so a key that is revoked is refused at once.
    """

    def __init__(self, path: str) -> None:
        """Read the keys of a file.

        Raises:
            UsageError: it cannot be read, or holds no key.
        """
        self._path = path
        self._version = _version(path)
        self._callers = _by_hash(read_keys(path))
        if not self._callers:
            raise UsageError(f"{path}: holds no key; make one with: wfdsl serve keys make NAME --keys {path}")

    @classmethod
    def load(cls, path: str) -> ApiKeys:
        """The keys of a file.

        Raises:
            UsageError: it cannot be read, or holds no key.
        """
        return cls(path)

    def caller(self, authorization: str | None) -> Caller:
        """Whose key a request has: a bearer token, or the password of a URL such as `http://user:KEY@host`.

        Raises:
            ApiError: it has none, or one that is not accepted.
        """
        self._read_again()
        scheme, _, sent = (authorization or "").partition(" ")
        key = _READERS.get(scheme.lower(), _none)(sent.strip())
        found = self._callers.get(_hash(key)) if key else None
        if found is None:
            what = "the API key is not accepted" if sent else "send an API key: Authorization: Bearer KEY"
            raise ApiError(401, what, code="invalid_api_key", headers={"www-authenticate": "Bearer", **NO_RETRY})
        return found

    def _read_again(self) -> None:
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            self._callers = _by_hash(read_keys(self._path))
        except UsageError as error:  # someone is editing it: what was read before still holds
            _log.warning("the keys are as before: %s", error)


def read_keys(path: str) -> dict[str, KeyLimits]:
    """The keys of a file, by their names.

    Raises:
        UsageError: it cannot be read, or is not such a file.
    """
    tables = read_toml_file(Path(path), "file of keys")
    return {
        name: from_table(KeyLimits, require_table(table, f"{path}: {name}"), f"{path}: {name}")
        for name, table in tables.items()
    }


def make_key(path: str, name: str, limits: Mapping[str, Any]) -> str:
    """Make a key and add its hash and its limits to a file; the key, which is not kept anywhere.

    Raises:
        UsageError: the name or a limit cannot be used, or the file cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"a key's name has 1 to 64 letters, digits, - and _ (got {name!r:.80})")
    known = read_keys(path) if Path(path).exists() else {}
    if name in known:
        raise UsageError(f"{path}: there is a key {name!r} already; take another name, or revoke it first")
    key = _PREFIX + secrets.token_urlsafe(32)
    about = KeyLimits(hash=_hash(key), created=time.strftime("%Y-%m-%d", time.gmtime()), **limits)
    text = Path(path).read_text("utf-8") if known else ""
    lines = [
        f"{field} = {json.dumps(value, ensure_ascii=False)}\n" for field, value in to_table(about).items() if value
    ]
    _write(path, f"{text}{chr(10) if text else ''}[{name}]\n{''.join(lines)}")
    return key


def revoke_key(path: str, name: str) -> None:
    """Take a key out of a file.

    Raises:
        UsageError: there is no such key, or the file cannot be written.
    """
    known = read_keys(path)
    if name not in known:
        raise UsageError(f"{path}: there is no key {name!r} (keys: {', '.join(known) or 'none'})")
    lines = Path(path).read_text("utf-8").splitlines(keepends=True)
    begins = [index for index, line in enumerate(lines) if line.startswith("[")]
    own = next((index for index in begins if lines[index].strip() == f"[{name}]"), None)
    if own is None:
        raise UsageError(f"{path}: there is no line [{name}]; remove the key by hand")
    following = next((index for index in begins if index > own), len(lines))
    _write(path, "".join(lines[:own] + lines[following:]))


def _write(path: str, text: str) -> None:
    """Write a file that only its owner may read, in one step: a server that reads it sees all of it."""
    new = Path(f"{path}.new")
    try:
        new.touch(_PRIVATE)
        new.write_text(text, "utf-8")
        new.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _by_hash(keys: Mapping[str, KeyLimits]) -> dict[str, Caller]:
    return {limits.hash: Caller(name, limits) for name, limits in keys.items()}


def _version(path: str) -> tuple[int, ...]:
    """What changes when a file is written; empty if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _password(credentials: str) -> str:
    """The password of HTTP's basic scheme (RFC 7617)."""
    try:
        return b64decode(credentials, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _none(credentials: str) -> str:  # noqa: ARG001  (a reader has one argument)
    return ""


_READERS: Final[Mapping[str, Callable[[str], str]]] = {"bearer": str, "basic": _password}
"""What finds the key in a request's credentials, by their scheme."""


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()
