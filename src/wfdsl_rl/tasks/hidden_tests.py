"""LiveCodeBench's private tests: JSON in a pickle, packed by zlib and base64.

A pickle can run any code when it is loaded, so it is never loaded: its opcodes are read, and it may hold one text and
nothing else. What it unpacks to is bounded.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from typing import Any

from wfdsl_rl.tasks.origin import BadRow

_LARGEST = 1 << 30  # bytes unpacked: the largest of release_v6 has some hundred million; a bomb has more

_OPCODES = frozenset(
    {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}
    | {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
)
"""Of which the pickle of one text is made, in every protocol."""


def hidden_tests(value: object) -> Any:
    """The test cases, from JSON or from packed JSON.

    Raises:
        BadRow: it is neither, or the pickle holds anything but a text.
    """
    if not isinstance(value, str):
        return value
    if value.lstrip()[:1] in ("[", "{"):
        return _json(value)
    return _json(_only_text(_unpacked(value)))


def _unpacked(value: str) -> bytes:
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(value, validate=True), _LARGEST)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise BadRow(f'"private_test_cases" is neither JSON nor packed JSON: {error}') from error
    if unpacker.unconsumed_tail:
        raise BadRow(f'"private_test_cases" unpacks to more than {_LARGEST >> 30} GiB: it is left alone')
    return data


def _only_text(data: bytes) -> str:
    """The one text that the pickle holds, read from its opcodes; nothing is executed."""
    texts: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name not in _OPCODES:
                raise BadRow(
                    f'"private_test_cases" holds a pickle of more than one text ({opcode.name}): it is not loaded'
                )
            if isinstance(argument, str):
                texts.append(argument)
    except (ValueError, OverflowError) as error:
        if isinstance(error, BadRow):
            raise
        raise BadRow(f'"private_test_cases" holds a damaged pickle: {error}') from error
    if len(texts) != 1:
        raise BadRow(f'"private_test_cases" holds a pickle of {len(texts)} texts where one was expected')
    return texts[0]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRow(f'"private_test_cases" is not JSON: {error}') from error
