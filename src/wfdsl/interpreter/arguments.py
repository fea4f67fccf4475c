"""Arguments of `run`, `resume` and `stream`, checked in one place before anything is opened or asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.config import RunConfig
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.tools import Tools
from wfdsl.language.workflow import Workflow

_ROLES = ("system", "user", "assistant")


def check_arguments(given: Mapping[str, Any]) -> None:
    """Check arguments by their names, as far as there are rules for them; None: an optional one was not given.

    Raises:
        UsageError: a value cannot be used; the message says what can.
    """
    for name, value in given.items():
        if name not in _RULES or (value is None and name not in _REQUIRED):
            continue
        fits, wanted = _RULES[name]
        if not fits(value):
            raise UsageError(f"{name} must be {wanted} (got {_shown(value)})")


def checked_question(question: Any) -> Question:
    """The question as a value that cannot change.

    Raises:
        UsageError: it is neither a text nor a conversation, or is not valid Unicode.
    """
    if isinstance(question, str):
        _require_unicode(question)
        return question
    if not isinstance(question, Sequence) or isinstance(question, bytes | bytearray):
        raise UsageError(f"question must be a text or a list of chat messages (got {_shown(question)})")
    for index, message in enumerate(question):
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            roles = ", ".join(f'"{role}"' for role in _ROLES)
            raise UsageError(
                f'question message {index} must have a "role" ({roles}) and a "content" (got {_shown(message)})'
            )
        if not isinstance(message.get("content"), str):
            content = _shown(message.get("content"))
            raise UsageError(
                f"the content of question message {index} must be a text (got {content}); "
                'URLs of images are in a list of their own, "images", and other parts are not supported'
            )
        _require_unicode(message["content"])
        images = message.get("images", ())
        if not isinstance(images, list | tuple) or not all(isinstance(url, str) for url in images):
            raise UsageError(f"the images of question message {index} must be a list of URLs (got {_shown(images)})")
    return tuple(question)


def _require_unicode(text: str) -> None:
    """Refuse half of a surrogate pair, as broken JSON escapes and bytes that are not UTF-8 leave it."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the question is not valid Unicode: it has {text[error.start]!r} at character {error.start}; "
            "write it in UTF-8, with both halves of each surrogate pair"
        ) from None


def check_names(names: Any, workflow: Workflow) -> None:
    """Check the display names of the steps.

    Raises:
        UsageError: they are not one text for each step.
    """
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"names must be a list with a text for each step (got {_shown(names)})")
    if len(names) != len(workflow.steps):
        raise UsageError(
            f"names must hold one name for each step: the workflow has {len(workflow.steps)} (got {len(names)})"
        )


def _is_pool(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("name", "indices", "entry", "worker"))


def _is_listener(value: Any) -> bool:
    if not callable(value):
        return False
    code = getattr(value, "__code__", None)
    if code is not None:  # inspect takes as long as a tenth of a step
        return not code.co_flags & inspect.CO_COROUTINE
    return not inspect.iscoroutinefunction(value) and not inspect.iscoroutinefunction(type(value).__call__)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and value not in ("", "last") and value.isprintable()


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(each, str) for each in value)


def _is_origin(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, str) for pair in value.items() for each in pair)


def _kind(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "workflow": (_kind(Workflow), "a Workflow: write wfdsl.load(FILE, pool=pool) or wfdsl.parse(TEXT)"),
    "pool": (_is_pool, 'a Pool: write Pool.load("openai:gpt-5"), Pool.load(FILE) or Pool.from_functions([...])'),
    "config": (_kind(RunConfig), "a RunConfig"),
    "budget": (_kind(Budget, BudgetTracker), "a Budget, such as Budget(usd=1.0), or a BudgetTracker"),
    "account": (_kind(BudgetTracker), "a BudgetTracker"),
    "journal": (_kind(Journal, str, Path), "a Journal, or the path of one"),
    "limiter": (_kind(ConcurrencyLimiter), "a ConcurrencyLimiter"),
    "on_event": (_is_listener, "a plain function that takes an event, not an async one"),
    "previous": (_is_pair, "a pair of texts, the subtask and its response"),
    "run_id": (_is_id, "a text of printable characters, and not `last`, which means the newest run"),
    "sample_id": (_kind(str), "a text"),
    "answer_settings": (_kind(Mapping), "a mapping of settings, such as {'temperature': 0}"),
    "tools": (_kind(Tools), "a Tools"),
    "origin": (_is_origin, "a mapping of texts to texts"),
}
_REQUIRED = frozenset({"workflow", "pool"})


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
