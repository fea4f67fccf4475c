"""Worker entries and the pool that numbers them.

A pool is a value: ordinals are positions, and a subset keeps them unless asked to renumber. What runs behind it
(clients, a local server) is built on first use and closed by `Pool.open()`. Entries hold no keys, only where keys are.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from wfdsl.errors import UsageError
from wfdsl.protocols import Usage
from wfdsl.redaction import find_key, is_secret_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from wfdsl.protocols import Worker
    from wfdsl.workers.bench import Bench
    from wfdsl.workers.function import ChatFunction

_Texts: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]
_EnvironmentName = r"^[A-Za-z_][A-Za-z0-9_]*$"
_TOKENS_PER_PRICE = 1_000_000


class _Strict(BaseModel):
    """No unknown keys, no silent conversions, and no values in error texts (a value may be a key)."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)


class Limits(_Strict):
    """What a provider lets one worker do."""

    requests_per_minute: int | None = Field(default=None, gt=0)
    """Requests in any minute; None: no limit."""
    tokens_per_minute: int | None = Field(default=None, gt=0)
    """Input and output tokens in any minute; None: no limit."""
    concurrency: int | None = Field(default=None, gt=0)
    """Calls in flight at the same time; None: no limit."""


class Prices(_Strict):
    """A price list, in US dollars per million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    """US dollars per million input tokens."""
    output: float = Field(ge=0, allow_inf_nan=False)
    """US dollars per million output tokens, thinking included."""
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """US dollars per million input tokens that the provider read from its cache; None: as `input`."""
    source: str = ""
    """Where the prices come from."""
    as_of: dt.date | None = None
    """The day on which they were looked up."""

    def usd(self, usage: Usage) -> float:
        """What these tokens cost, in US dollars."""
        cached = self.input if self.cached is None else self.cached
        fresh_tokens = max(usage.input_tokens - usage.cached_tokens, 0)
        cost = fresh_tokens * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output
        return cost / _TOKENS_PER_PRICE


class WorkerEntry(_Strict):
    """One worker: which model, how it is asked, what it costs. Never a key: those stay in the environment or in files.

    Numbers that the paper's controlled setting fixes are in the shipped pool `paper`; defaults here are our choice.
    """

    name: str = Field(min_length=1, max_length=200)
    """What people call it; unique in its pool. A Conductor never sees it."""
    provider: str = Field(min_length=1)
    """`openai`, `anthropic`, `google`, `local`, `transformers`, `scripted`, `function`, `conductor`, or a plug-in's."""
    model: str = ""
    """The provider's name of the model, or a path for models that run here."""
    description: str = ""
    """What the Conductor is shown next to the ordinal. Brand names bias it, so none belongs here."""
    tags: _Texts = ()
    """Groups that `.wf` files name with `by tag`."""

    system_prompt: str = ""
    """Placed before everything else in each call."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """None: the provider's default."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """None: the provider's default."""
    max_tokens: int = Field(default=4096, gt=0)
    """The longest reply, in tokens. OpenAI counts reasoning in it; elsewhere the thinking budget comes on top."""
    seed: int | None = None
    """Sent to providers that take one."""
    stop: _Texts = ()
    """Texts at which the reply ends."""
    reasoning_effort: str | None = None
    """The provider's own word, such as `minimal` or `high`."""
    thinking_budget: int | None = Field(default=None, ge=0)
    """Thinking tokens, where the provider counts them; 0 turns thinking off; None: the provider's default."""

    api: Literal["chat", "responses"] = "chat"
    """Which of OpenAI's two APIs."""
    base_url: str | None = None
    """The server, for everything that is not the provider's own; no user name or password in it."""
    token_limit_field: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    """What the server calls its limit; `auto`: the second at OpenAI itself, the first elsewhere."""
    grammar_field: Literal["auto", "grammar", "structured_outputs", "guided_grammar", "ebnf"] = "auto"
    """What the server calls a grammar: llama.cpp, vLLM, vLLM before 0.12, SGLang; `auto`: the first, where `base_url`
    is set. OpenAI, Google and Anthropic themselves take none."""
    grammar_dialect: Literal["auto", "gbnf", "llguidance"] = "auto"
    """How the server wants a grammar written; `auto`: llguidance's way for `transformers`, llama.cpp's elsewhere."""
    api_key_env: str | None = Field(default=None, pattern=_EnvironmentName)
    """The environment variable that holds the key; None: the provider's usual one, and none where `base_url` is set."""
    api_key_file: str | None = None
    """A file that holds the key and nothing else."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Further HTTP headers; secrets go to `headers_env`."""
    headers_env: Mapping[str, str] = Field(default_factory=dict)
    """Further HTTP headers whose values are in the environment: header name to variable name."""
    extra_body: Mapping[str, Any] = Field(default_factory=dict)
    """Further fields of the request's JSON body."""
    proxy: str | None = None
    """URL of an HTTP proxy; one with a password goes to `proxy_env`."""
    proxy_env: str | None = Field(default=None, pattern=_EnvironmentName)
    """The environment variable that holds the proxy's URL."""
    ca_file: str | None = None
    """Certificates (PEM) to trust in place of the system's."""
    options: Mapping[str, Any] = Field(default_factory=dict)
    """What only this provider understands."""

    limits: Limits = Limits()
    prices: Prices | None = None
    """None: not known, which is never the same as free."""
    timeout_s: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    """The longest that one attempt may take, in seconds."""
    idle_timeout_s: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    """The longest silence inside a streamed reply, in seconds."""
    retries: int = Field(default=4, ge=0)
    """Further attempts after a failure that may pass."""
    fallback: str | None = None
    """The name of the worker of this pool that takes over when this one has failed for good."""

    @field_validator("name")
    @classmethod
    def _name_is_printable(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip():
            raise ValueError("a name has no line breaks, no control characters and no space at its ends")
        return name

    @field_validator("headers")
    @classmethod
    def _headers_hold_no_secret(cls, headers: Mapping[str, str]) -> Mapping[str, str]:
        for header, value in headers.items():
            if not f"{header}{value}".isascii() or not f"{header}{value}".isprintable():
                raise ValueError(f"the header {header!r} may hold printable ASCII only")
            if is_secret_header(header):
                raise ValueError(
                    f"the header {header} is a secret: put it into an environment variable "
                    f'and write headers_env = {{ "{header}" = "NAME_OF_THE_VARIABLE" }}'
                )
        return headers

    @field_validator("base_url", "proxy")
    @classmethod
    def _url_holds_no_password(cls, url: str | None) -> str | None:
        if url is None:
            return None
        scheme, separator, rest = url.partition("://")
        if not separator or not scheme.startswith(("http", "socks")) or not rest:
            raise ValueError('this is no URL: write it like "https://host/v1"')
        if "@" in rest.split("/", 1)[0]:
            raise ValueError("a password does not belong in a URL here: use api_key_env, headers_env or proxy_env")
        return url

    @model_validator(mode="after")
    def _holds_no_key(self) -> WorkerEntry:
        where = find_key(self.model_dump(mode="json"))
        if where is not None:
            raise ValueError(
                f"{where} holds what looks like a key: put the key into an environment variable "
                f"and name that variable in api_key_env"
            )
        return self

    def __hash__(self) -> int:
        return hash((self.name, self.provider, self.model))

    @property
    def output_limit(self) -> int:
        """The most output tokens that one call can be charged for, thinking included, as far as the provider says."""
        return self.max_tokens + (self.thinking_budget or 0)

    def cost_usd(self, usage: Usage) -> float | None:
        """What these tokens cost by the price list, in US dollars; None if there is no price list."""
        return None if self.prices is None else self.prices.usd(usage)


class PoolSettings(_Strict):
    """What holds for a whole pool."""

    name: str = "pool"
    description: str = ""
    conductor: str | None = Field(default=None, min_length=1)
    """The Conductor that answers questions on this pool where nobody names another; None: `local`."""
    max_reply_chars: int = Field(default=200_000, gt=0)
    """The longest reply, in code points. Our choice: fifty times the paper's 4096 tokens."""
    oversize: Literal["cut", "refuse"] = "cut"
    """A longer reply is cut, with a mark that says so, or is a failure."""


class Pool:
    """Workers by ordinal. Immutable; iterating gives the entries in order of their ordinals."""

    def __init__(
        self,
        entries: Iterable[WorkerEntry] | Mapping[int, WorkerEntry],
        *,
        settings: PoolSettings | None = None,
        workers: Mapping[str, Worker] | None = None,
    ) -> None:
        """Number the entries from 0, or take ordinals as given. `workers` are ready-made ones, by name.

        Raises:
            UsageError: no worker at all, two of the same name, or a fallback that is not in the pool.
        """
        numbered = dict(entries) if isinstance(entries, Mapping) else dict(enumerate(entries))
        self._entries: dict[int, WorkerEntry] = dict(sorted(numbered.items()))
        self.settings = settings or PoolSettings()
        self._given = dict(workers or {})
        self._benches: WeakKeyDictionary[asyncio.AbstractEventLoop, Bench] = WeakKeyDictionary()
        self._loopless: list[Bench] = []
        _check_entries(self._entries.values(), self.settings.name)

    @classmethod
    def load(cls, path_or_name: str) -> Pool:
        """Read a pool file, or a pool by the name under which it is shipped or was installed by a plug-in.

        Raises:
            UsageError: there is no such file or name, or the file is no valid pool.
        """
        from wfdsl.workers.pool_file import load_pool  # noqa: PLC0415  (it builds pools)

        return load_pool(path_or_name)

    @classmethod
    def from_workers(cls, members: Iterable[tuple[WorkerEntry, Worker]], *, name: str = "pool") -> Pool:
        """A pool of ready-made workers: anything that keeps the worker protocol."""
        pairs = list(members)
        workers = {entry.name: worker for entry, worker in pairs}
        return cls([entry for entry, _ in pairs], settings=PoolSettings(name=name), workers=workers)

    @classmethod
    def from_functions(
        cls,
        functions: Sequence[ChatFunction],
        names: Sequence[str] | None = None,
        descriptions: Sequence[str] | None = None,
    ) -> Pool:
        """A pool of functions `async def f(messages: list[dict]) -> str`, messages as in the OpenAI chat API.

        Names default to the functions' own. Calls are free: give entries with prices to `from_workers` otherwise.

        Raises:
            UsageError: a function is not async, or there are not as many names or descriptions as functions.
        """
        from wfdsl.workers.function import function_members  # noqa: PLC0415  (it builds entries)

        return cls.from_workers(function_members(functions, names, descriptions), name="functions")

    @property
    def name(self) -> str:
        """What the pool calls itself."""
        return self.settings.name

    @property
    def ordinals(self) -> tuple[int, ...]:
        """The ordinals that a workflow may use, ascending."""
        return tuple(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The workers' names, in order of their ordinals."""
        return tuple(entry.name for entry in self)

    @property
    def conductors(self) -> tuple[int, ...]:
        """The ordinals of workers that are Conductors themselves."""
        return self._where(lambda entry: entry.provider == "conductor")

    def entry(self, ordinal: int) -> WorkerEntry:
        """The entry of a worker.

        Raises:
            UsageError: the pool has no such ordinal.
        """
        if ordinal not in self._entries:
            have = ", ".join(map(str, self._entries))
            raise UsageError(f'the pool "{self.name}" has no worker {ordinal}; it has {have}')
        return self._entries[ordinal]

    def find(self, name: str) -> int | None:
        """The ordinal of the worker of this name."""
        return next(iter(self._where(lambda entry: entry.name == name)), None)

    def tagged(self, tag: str) -> tuple[int, ...]:
        """The ordinals of the workers with this tag, ascending."""
        return self._where(lambda entry: tag in entry.tags)

    def subset(self, ordinals: Iterable[int], *, renumber: bool = False) -> Pool:
        """The pool of these workers only, under their own ordinals, or renumbered from 0 in the order given.

        Subsets share the clients and servers of the pool that they come from.

        Raises:
            UsageError: the pool has no such ordinal, or none is given.
        """
        chosen = {ordinal: self.entry(ordinal) for ordinal in ordinals}
        entries = dict(enumerate(chosen.values())) if renumber else chosen
        part = Pool(_without_lost_fallbacks(entries), settings=self.settings, workers=self._given)
        part._benches, part._loopless = self._benches, self._loopless
        return part

    def worker(self, ordinal: int) -> Worker:
        """The worker itself, built once per event loop: one attempt per call, and the pool's text policy.

        Raises:
            UsageError: no such ordinal, a key or a package is missing, or a setting does not fit the provider.
        """
        return self._bench().worker(self.entry(ordinal), self._build)

    def open(self) -> AbstractAsyncContextManager[Pool]:
        """Keep clients and servers up inside the block, and close them behind the last open block.

        They start when first used. Blocks may nest and overlap, also those of subsets.
        """
        return _OpenBlock(self)

    def _build(self, entry: WorkerEntry, bench: Bench) -> Worker:
        from wfdsl.workers.registry import build_worker  # noqa: PLC0415  (workers stand above pools)
        from wfdsl.workers.text_policy import PolicedWorker  # noqa: PLC0415

        plain = self._given.get(entry.name) or bench.keep(build_worker(entry, bench))
        return PolicedWorker(plain, self.settings.max_reply_chars, self.settings.oversize)

    def _bench(self) -> Bench:
        """What is built here, apart for each event loop: connections cannot move to another one."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loopless[:] = self._loopless or [_new_bench()]
            return self._loopless[0]
        bench = self._benches.get(loop)
        if bench is None:
            bench = self._benches[loop] = _new_bench()
        return bench

    def _where(self, wanted: Callable[[WorkerEntry], bool]) -> tuple[int, ...]:
        return tuple(ordinal for ordinal, entry in self._entries.items() if wanted(entry))

    def __iter__(self) -> Iterator[WorkerEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, member: object) -> bool:
        """Whether this is an ordinal, a name or an entry of the pool."""
        return member in self._entries or any(member in (entry.name, entry) for entry in self)

    def __repr__(self) -> str:
        members = ", ".join(f"{ordinal}={entry.name}" for ordinal, entry in self._entries.items())
        return f"Pool({self.name!r}: {members})"

    def __getstate__(self) -> dict[str, Any]:
        """Clients, servers and event loops stay behind when a pool travels to another process."""
        return {"_entries": self._entries, "settings": self.settings, "_given": self._given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_entries"], settings=state["settings"], workers=state["_given"])  # type: ignore[misc]


class _OpenBlock:
    """One open block of a pool. Each run has one, so it is a class: a generator would cost three times as much."""

    __slots__ = ("_bench", "_pool")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def __aenter__(self) -> Pool:
        self._bench = self._pool._bench()
        self._bench.users += 1
        return self._pool

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bench.users -= 1
        if not self._bench.users:
            await self._bench.aclose()


def _new_bench() -> Bench:
    from wfdsl.workers.bench import Bench  # noqa: PLC0415  (workers stand above pools)

    return Bench()


def _check_entries(entries: Iterable[WorkerEntry], pool: str) -> None:
    names = [entry.name for entry in entries]
    if not names:
        raise UsageError(f'the pool "{pool}" has no workers: give it at least one [[pool.workers]]')
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f'the pool "{pool}" has two workers called "{name}": names must differ')
    for entry in entries:
        if entry.fallback is not None and (entry.fallback not in names or entry.fallback == entry.name):
            others = ", ".join(name for name in names if name != entry.name) or "none"
            raise UsageError(
                f'worker "{entry.name}" of the pool "{pool}" falls back on "{entry.fallback}", '
                f"which is not another worker of the pool; there is: {others}"
            )


def _without_lost_fallbacks(entries: Mapping[int, WorkerEntry]) -> dict[int, WorkerEntry]:
    """A fallback outside the subset would let a workflow reach a worker that it was not offered."""
    fine = {None, *(entry.name for entry in entries.values())}
    return {
        ordinal: entry if entry.fallback in fine else entry.model_copy(update={"fallback": None})
        for ordinal, entry in entries.items()
    }
