r"""The worker process that compares two expressions with math-verify: one JSON line in, one JSON line out.

Symbolic algebra on a text that a model wrote may take forever, or all memory. So this runs in a process of its own,
which the parent ends when it takes too long, and which the kernel ends a little later if the parent is gone.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
from typing import Any, TextIO

from math_verify import LatexExtractionConfig, parse, verify  # type: ignore[import-untyped]

ADDRESS_SPACE_BYTES = 4 * 2**30
"""The most that the process may reserve. The parent ends it long before, by its resident memory."""
_CONFIG = (LatexExtractionConfig(boxed_match_priority=0),)


def compare(gold: str, answer: str) -> dict[str, str]:
    """`{"outcome": right | wrong | unread-gold | unread-answer}`: expressions in LaTeX, without dollar signs."""
    golds, answers = _parse(gold), _parse(answer)
    if not golds or not answers:
        return {"outcome": "unread-answer" if golds else "unread-gold"}
    is_equal = verify(golds, answers, timeout_seconds=None, raise_on_error=True)
    return {"outcome": "right" if is_equal else "wrong"}


def _parse(expression: str) -> list[Any]:
    return list(parse(f"${expression}$", _CONFIG, fallback_mode="no_fallback", parsing_timeout=None))


def _answer(line: str) -> dict[str, str]:
    request = json.loads(line)
    signal.setitimer(signal.ITIMER_REAL, request["limit_s"])
    try:
        return compare(request["gold"], request["answer"])
    except Exception as error:  # noqa: BLE001  (any failure of the algebra means: unjudged)
        return {"outcome": "failed", "reason": f"{type(error).__name__}: {str(error)[:200]}"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main(requests: TextIO, replies: TextIO) -> None:
    """Answer until there are no more requests. An empty line says that the process is ready."""
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, even in the middle of C code
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    _limit_memory()
    compare("1", "2")  # tables of the parser are built on first use
    print(file=replies, flush=True)
    for line in requests:
        print(json.dumps(_answer(line)), file=replies, flush=True)


def _limit_memory() -> None:
    import resource  # noqa: PLC0415  (there is none on Windows)

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


if __name__ == "__main__":
    replies_only, sys.stdout = sys.stdout, sys.stderr  # what the libraries print is not a reply
    main(sys.stdin, replies_only)
