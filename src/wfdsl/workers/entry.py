"""The entry of a worker: which model, how it is asked, its limits and prices; and the settings of a pool.

Entries hold no keys, only where keys are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from wfdsl.errors import UsageError
from wfdsl.protocols import Usage
from wfdsl.settings import build_model, problem_in
from wfdsl.workers.redaction import find_key, is_secret_name

_Texts: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]
_EnvironmentName = r"^[A-Za-z_][A-Za-z0-9_]*$"
_TOKENS_PER_PRICE = 1_000_000
_Options = TypeVar("_Options", bound="Options")
SIMULATED: Final = "simulated"
"""The tag of workers that only play a model."""


class Strict(BaseModel):
    """A value that pydantic checks: no unknown fields, no silent conversions, no texts in errors (one may be a key)."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)

    def __init__(self, /, **fields: Any) -> None:
        """Check the fields; raises UsageError if one is missing, not known, or does not fit."""
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise UsageError(f"{type(self).__name__}: {problem_in(error)}") from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # so pydantic calls it for no inner value


class Limits(Strict):
    """What a provider lets one worker do."""

    requests_per_minute: int | None = Field(default=None, gt=0)
    """Requests in any minute; None: no limit."""
    tokens_per_minute: int | None = Field(default=None, gt=0)
    """Input and output tokens in any minute; None: no limit."""
    concurrency: int | None = Field(default=None, gt=0)
    """Calls in flight at the same time; None: no limit."""
    account: str | None = Field(default=None, min_length=1)
    """Workers that name the same account have these limits together; None: each has them for itself."""


class _TokenPrices(Strict):
    input: float = Field(ge=0, allow_inf_nan=False)
    """US dollars per million input tokens."""
    output: float = Field(ge=0, allow_inf_nan=False)
    """US dollars per million output tokens, thinking included."""
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """US dollars per million input tokens that the provider read from its cache; None: as `input`."""
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """US dollars per million input tokens that the provider wrote into its cache; at least as `input`."""


class PriceTier(_TokenPrices):
    """The prices of all tokens of a call with many input tokens."""

    above: int = Field(gt=0)
    """The call has more input tokens than this."""


class Prices(_TokenPrices):
    """A price list, in US dollars per million tokens."""

    tiers: Annotated[tuple[PriceTier, ...], Field(strict=False)] = ()
    """Other prices for calls with many input tokens, in ascending order."""
    source: str = ""
    """Where the prices come from."""
    as_of: dt.date | None = None
    """The day on which they were looked up."""

    def usd(self, usage: Usage) -> float:
        """What these tokens cost, in US dollars."""
        return self.usd_of(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)

    def usd_of(self, read: int, written: int, cached: int = 0, cache_write: int = 0) -> float:
        """What so many tokens cost, in US dollars; the last two are parts of the input, as in `Usage`."""
        price: _TokenPrices = self
        for tier in self.tiers:
            price = tier if read > tier.above else price
        cost = max(read - cached - cache_write, 0) * price.input
        cost += cached * (price.input if price.cached is None else price.cached)
        cost += cache_write * max(price.cache_write or 0.0, price.input)
        return (cost + written * price.output) / _TOKENS_PER_PRICE


class WorkerEntry(Strict):
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
    """What the Conductor is shown next to the worker index. Brand names bias it, so leave them out."""
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

    images: bool = False
    """Whether it can be shown images."""
    strip_thinking: bool = False
    """Whether a text's beginning up to `</think>` (or another model's mark) is taken out of it: later steps and the
    answer do not have it, the record keeps it. For servers that write thinking into the reply."""
    api: Literal["chat", "responses"] = "chat"
    """Which of OpenAI's two APIs."""
    base_url: str | None = None
    """The server, for everything that is not the provider's own; no user name, password or key in it. Its query, such
    as Azure's `?api-version=`, is sent with each request."""
    stream: bool = True
    """Whether replies may be asked for piece by piece; false for servers that refuse it."""
    stream_options: bool = True
    """Whether a stream is asked for its token counts (`stream_options`); false for servers that refuse the field."""
    token_limit_field: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    """What the server calls its limit; `auto`: the second at OpenAI itself, the first elsewhere."""
    grammar_field: Literal["auto", "grammar", "structured_outputs", "guided_grammar", "ebnf"] = "auto"
    """What the server calls a grammar: llama.cpp, vLLM, vLLM before 0.12, SGLang; `auto`: the first, where `base_url`
    is set. OpenAI, Google and Anthropic themselves take none."""
    grammar_dialect: Literal["auto", "gbnf", "llguidance"] = "auto"
    """How the server wants a grammar written; `auto`: llguidance's way for `transformers`, llama.cpp's elsewhere."""
    api_key_env: str | None = Field(default=None, pattern=_EnvironmentName)
    """The environment variable that holds the key; None: the provider's usual one, and none where `base_url` is set."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Further HTTP headers; secrets go to `headers_env`."""
    headers_env: Mapping[str, str] = Field(default_factory=dict)
    """Further HTTP headers whose values are in the environment: header name to variable name."""
    extra_body: Mapping[str, Any] = Field(default_factory=dict)
    """Further fields of the request's JSON body."""
    options: Mapping[str, Any] = Field(default_factory=dict)
    """What only this provider understands. At a server: `context`, the tokens of prompt and reply together."""

    limits: Limits = Limits()
    """Calls in flight, and calls and tokens per minute."""
    prices: Prices | None = None
    """None: not known, which is never the same as free."""
    timeout_s: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    """The longest that one attempt may take, in seconds."""
    idle_timeout_s: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    """The longest silence inside a streamed reply, in seconds, once it has begun."""
    retries: int = Field(default=4, ge=0)
    """Further attempts after a failure that may pass."""
    fallback: str | None = None
    """The name of the worker of this pool that is called when this one has failed for good."""

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
            if is_secret_name(header):
                raise ValueError(
                    f"the header {header} is a secret: put it into an environment variable "
                    f'and write headers_env = {{ "{header}" = "NAME_OF_THE_VARIABLE" }}'
                )
        return headers

    @field_validator("base_url")
    @classmethod
    def _base_url_is_usable(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            known = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:  # a port that is not one
            known = False
        if "@" in url:  # anywhere: what is before it may be a password, also where another slash precedes
            raise ValueError("a password does not belong in a URL: use api_key_env or headers_env")
        if not known or parts.fragment or not url.isprintable() or " " in url:
            raise ValueError('this is not a URL: write it like "https://host/v1"')
        names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        if secret := next(filter(is_secret_name, names), None):
            raise ValueError(f"the parameter {secret} looks like a secret: use api_key_env or headers_env")
        if len(names) != len(set(names)):
            raise ValueError("a parameter is given twice")
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

    def options_as(self, model: type[_Options]) -> _Options:
        """What only this provider understands.

        Raises:
            UsageError: an option is not known, or does not fit.
        """
        return build_model(model, self.options, f'worker "{self.name}": options')

    @property
    def output_limit(self) -> int:
        """The most output tokens that one call can be charged for, thinking included, as far as the provider says."""
        return self.max_tokens + (self.thinking_budget or 0)

    def cost_usd(self, usage: Usage) -> float | None:
        """What these tokens cost by the price list, in US dollars; None if there is no price list."""
        return None if self.prices is None else self.prices.usd(usage)

    def most_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """The most that this number of tokens can cost: all input is written into the cache."""
        prices = self.prices
        return None if prices is None else prices.usd_of(input_tokens, output_tokens, cache_write=input_tokens)


class Options(Strict):
    """The options of a provider's workers, checked with `WorkerEntry.options_as`."""

    context: int | None = Field(default=None, gt=0)
    """Tokens of prompt and reply together; None: not known."""


class PoolSettings(Strict):
    """What holds for a whole pool."""

    name: str = "pool"
    description: str = ""
    conductor: str | None = Field(default=None, min_length=1)
    """The Conductor that answers questions on this pool, unless another one is named; None: `local`."""
    max_reply_chars: int = Field(default=200_000, gt=0)
    """A longer reply, in code points, is cut with a mark. Our choice: fifty times the paper's 4096 tokens."""
