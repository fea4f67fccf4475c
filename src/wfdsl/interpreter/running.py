"""Running a workflow: `run` gives the record of a run, `stream` its events as they happen, `resume` continues a run
that the journal has, and `run_sync` is `run` for code without an event loop. Arguments are checked before anything is
opened or asked.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import NOTHING_SPENT, UNLIMITED, Budget, BudgetTracker
from wfdsl.interpreter.call import Clock, Environment, Pipelines
from wfdsl.interpreter.conductor_node import Level
from wfdsl.interpreter.config import DEFAULT, RunConfig, RunRequest
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.events import Event, Listener, safe, unheard
from wfdsl.interpreter.execution import Execution, require_runnable
from wfdsl.interpreter.journal import Journal, RunJournal
from wfdsl.interpreter.journal_reading import request_of
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.record import Run, RunEnded
from wfdsl.interpreter.tools import Tools
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import WorkerPool
from wfdsl.settings import changed, not_default

_T = TypeVar("_T")
RunOptions: TypeAlias = dict[str, Any]
"""What `run` takes by name, for code that passes it on, such as a policy: fields of `RunConfig`, and `budget`,
`journal`, `limiter`, `on_event`, `run_id` and so on, each with the values that `run` takes.
"""


async def run(
    workflow: Workflow,
    question: Question,
    pool: WorkerPool,
    config: RunConfig | None = None,
    *,
    budget: Budget | BudgetTracker | None = None,
    account: BudgetTracker | None = None,
    journal: Journal | str | Path | None = None,
    limiter: ConcurrencyLimiter | None = None,
    on_event: Listener | None = None,
    names: Sequence[str] | None = None,
    previous: tuple[str, str] | None = None,
    run_id: str | None = None,
    sample_id: str | None = None,
    answer_settings: Mapping[str, Any] | None = None,
    tools: Tools | None = None,
    origin: Mapping[str, str] | None = None,
    **options: Any,
) -> Run:
    """Run a workflow on a question and give the record, whose `answer` is the last step's response.

    Args:
        workflow: What to run.
        question: A text, or a conversation of chat messages.
        pool: The workers.
        config: The options of the run.
        budget: The most that may be spent; or the tracker of a budget that several runs share.
        account: The tracker of a larger budget that several runs share, each within a `budget` of its own.
        journal: Where each call is kept, so that the run can be resumed; a journal, or the path of one.
        limiter: Limits the calls in flight of several runs together.
        on_event: Called with every event as it happens; a plain function. One that raises is logged and called no more.
        names: Display names of the steps; without them, those of the file that the workflow was loaded from.
        previous: The final (subtask, response) of the round before; steps with access "all" see it first.
        run_id: The run's id in records; a new one unless given. A run that the journal has is resumed.
        sample_id: Distinguishes calls that are otherwise the same; the run's id unless given.
        answer_settings: Sampling settings of the call that gives the answer: `temperature`, `top_p`, `max_tokens`,
            `stop`. They override the worker's own, except that a reply never gets longer than its `max_tokens`.
        tools: Tools that the caller runs itself. Needs a journal, which keeps calls and results.
        origin: Where workflow and pool were found, kept so that the run can be resumed.
        options: Fields of `RunConfig` by name, such as `concurrency=4`; they change what `config` says.

    Raises:
        RunFailed: a step failed for good; `.run` is the partial record.
        BudgetExhausted: the next call does not fit into the budget; `.run` is the partial record.
        RunSuspended: workers have called tools; once the journal has the results, the same call continues the run.
        UsageError: the workflow cannot run on this pool, or the question or an option cannot be used.
    """
    others = {"budget": budget, "journal": journal, "names": names, "on_event": on_event, "run_id": run_id}
    check_arguments({"workflow": workflow, "pool": pool, **others})
    if tools is not None and journal is None:
        raise UsageError("tools need a journal, which keeps their calls until the results are there")
    if account is not None and isinstance(budget, BudgetTracker):
        raise UsageError("account: the tracker of a budget is not within another one; give a Budget with it")
    if names is None and workflow.labels is not None:
        names = workflow.labels.names
    if workflow.labels is not None and workflow.labels.title:
        origin = {"title": workflow.labels.title, **(origin or {})}
    if names is not None and len(names) != len(workflow.steps):
        count = len(workflow.steps)
        raise UsageError(f"names must hold one name for each step: the workflow has {count} (got {len(names)})")
    run_id = new_run_id() if run_id is None else run_id
    tracker = budget if isinstance(budget, BudgetTracker) else None
    limits = budget if isinstance(budget, Budget) else UNLIMITED if tracker is None else tracker.budget
    request = RunRequest(
        workflow=workflow,
        question=checked_question(question),
        config=changed(config or DEFAULT, options),
        budget=limits,
        names=None if names is None else tuple(names),
        previous=None if previous is None else (previous[0], previous[1]),
        pool=pool.name,
        sample_id=run_id if sample_id is None else sample_id,
        answer_settings=answer_settings or {},
        tools=tools,
        origin=origin or {},
    )
    return await _run_request(
        run_id, request, pool, journal, tracker=tracker, account=account, limiter=limiter, on_event=on_event
    )


async def resume(
    run_id: str,
    pool: WorkerPool,
    *,
    journal: Journal | str | Path,
    budget: Budget | None = None,
    account: BudgetTracker | None = None,
    limiter: ConcurrencyLimiter | None = None,
    on_event: Listener | None = None,
    **options: Any,
) -> Run:
    """Continue a run that the journal has: calls that have a reply are not made again.

    What was spent before counts towards the budget. `budget` changes the limits that it sets, and the run keeps its
    others. `account` is as in `run`. `options` are fields of `RunConfig`; the others are as the run was started with.

    Raises:
        RunFailed, BudgetExhausted: as `run` does.
        UsageError: the journal has no such run, or another process is working on it; or as `run` does.
    """
    check_arguments({"run_id": run_id, "pool": pool, "budget": budget, "journal": journal, "on_event": on_event})
    if isinstance(budget, BudgetTracker):
        raise UsageError("budget must be a Budget: a resumed run keeps the tracker that the journal has for it")
    request = request_of(Path(journal) if isinstance(journal, str | Path) else journal.path, run_id)
    limits = replace(request.budget, **({} if budget is None else not_default(budget)))
    request = replace(request, config=changed(request.config, options), budget=limits)
    return await _run_request(
        run_id, request, pool, journal, tracker=None, account=account, limiter=limiter, on_event=on_event
    )


async def stream(
    workflow: Workflow, question: Question, pool: WorkerPool, config: RunConfig | None = None, **options: Any
) -> AsyncGenerator[Event, None]:
    """Run a workflow and give its events as they happen; the last one, `RunFinished`, holds the record.

    Takes what `run` takes. Leaving the loop early cancels the run.

    Raises:
        RunFailed, BudgetExhausted, UsageError: as `run` does, after the last event.
    """
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    listener = options.pop("on_event", None)
    check_arguments({"on_event": listener})
    also = None if listener is None else safe(listener)

    def hear(event: Event) -> None:
        queue.put_nowait(event)
        if also is not None:
            also(event)

    task = asyncio.create_task(run(workflow, question, pool, config, on_event=hear, **options))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])


def run_sync(
    workflow: Workflow, question: Question, pool: WorkerPool, config: RunConfig | None = None, **options: Any
) -> Run:
    """`run`, for code that has no event loop; takes what `run` takes.

    Raises:
        RunFailed, BudgetExhausted: as `run` does.
        UsageError: an event loop is running already; or as `run` does.
    """
    return wait_for(run(workflow, question, pool, config, **options), "wfdsl.run(...)")


def wait_for(work: Coroutine[Any, Any, _T], what: str) -> _T:
    """The result of some work, for code that has no event loop; `what` is what to await where there is one.

    Raises:
        UsageError: an event loop is running already.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise UsageError(f"this cannot wait inside a running event loop; write `await {what}` there instead")


def new_run_id() -> str:
    """An id for a run: the second when it was made, so that ids sort, and eight random hexadecimal digits."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(4).hex()}"


async def _run_request(
    run_id: str,
    request: RunRequest,
    pool: WorkerPool,
    journal: Journal | str | Path | None,
    *,
    tracker: BudgetTracker | None,
    account: BudgetTracker | None = None,
    limiter: ConcurrencyLimiter | None,
    on_event: Listener | None,
) -> Run:
    config, budget = request.config, request.budget
    require_runnable(request.workflow, pool, config.max_depth)
    loop = asyncio.get_running_loop()
    claiming = nullcontext() if journal is None else _claimed(run_id, request, journal)
    opened = getattr(pool, "open", lambda: nullcontext(pool))
    async with opened() as workers, claiming as kept:
        if tracker is None and (kept is not None or account is not None or budget is not UNLIMITED):
            tracker = BudgetTracker(budget, NOTHING_SPENT if kept is None else kept.spent, within=account)
        own = () if config.concurrency is None else (ConcurrencyLimiter(config.concurrency),)
        environment = Environment(
            run_id=run_id,
            longest_wait_s=config.longest_wait_s,
            clock=Clock(loop),
            limiters=own if limiter is None else (*own, limiter),
            budget=tracker,
            journal=kept,
            emit=unheard if on_event is None else safe(on_event),
        )
        level = Level(
            pipelines=Pipelines(workers),
            depth=config.max_depth,
            deadline=None if config.timeout_s is None else loop.time() + config.timeout_s,
        )
        execution = Execution(request, environment, level)
        if kept is None:
            return await execution.finish()
        run, refused = None, False
        try:
            run = await execution.finish()
        except RunEnded as error:
            run = error.run
            raise
        except UsageError:
            refused = True
            raise
        finally:
            forget = refused and kept.is_new
            kept.journal.release(run_id, "stopped" if run is None else run.status, run, refused=forget)
        return run


@asynccontextmanager
async def _claimed(run_id: str, request: RunRequest, journal: Journal | str | Path) -> AsyncIterator[RunJournal]:
    """Claim the run in the journal, which is closed at the end if only its path was given."""
    store = Journal(journal) if isinstance(journal, str | Path) else journal
    try:
        yield await store.claim(run_id, request)
    finally:
        if store is not journal:
            await asyncio.to_thread(store.close)


_ROLES = ("system", "user", "assistant")


def check_arguments(given: Mapping[str, Any]) -> None:
    """Check arguments by their names, as far as there are rules for them.

    Raises:
        UsageError: a value cannot be used; the message says what can.
    """
    for name, value in given.items():
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


def _are_names(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(name, str) for name in value)


def _is_pool(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("name", "indices", "entry", "worker"))


def _is_listener(value: Any) -> bool:
    is_async = inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(type(value).__call__)
    return callable(value) and not is_async


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and value not in ("", "last") and value.isprintable()


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "workflow": (
        lambda value: isinstance(value, Workflow),
        "a Workflow: write wfdsl.load(FILE, pool=pool) or wfdsl.parse(TEXT)",
    ),
    "pool": (_is_pool, 'a Pool: write Pool.load("openai:gpt-5"), Pool.load(FILE) or Pool.from_functions([...])'),
    "budget": (lambda value: isinstance(value, Budget | BudgetTracker | None), "a Budget, such as Budget(usd=1.0)"),
    "journal": (lambda value: isinstance(value, Journal | str | Path | None), "a Journal, or the path of one"),
    "names": (lambda value: value is None or _are_names(value), "a list with a text for each step"),
    "on_event": (
        lambda value: value is None or _is_listener(value),
        "a plain function that takes an event, not an async one",
    ),
    "run_id": (
        lambda value: value is None or _is_id(value),
        "a text of printable characters, and not `last`, which means the newest run",
    ),
}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
