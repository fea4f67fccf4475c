"""Keys are planted, every failure is provoked, and everything that was raised, logged or printed is searched."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from typing import TYPE_CHECKING, Any

import pytest
from tests.workers.wire import (
    KINDS,
    as_json,
    ask,
    entry_for,
    failure_of,
    good_body,
    good_events,
    reply,
    serving,
    stalling,
    stream,
    streaming,
)

from wfdsl.cli.main import main
from wfdsl.errors import UsageError, WfdslError
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl.workers.redaction import Scrubber, find_key

if TYPE_CHECKING:
    from pathlib import Path

KEYS = ["sk-planted-0123456789abcdefghij", "plainword42planted", "AIzaPlanted0123456789abcdefghijklmnop"]
HEADER = "header-secret-planted"


def _everything_about(error: BaseException) -> str:
    """The error as it would be printed, and all that hangs on it, whether it would be printed or not."""
    texts = ["".join(traceback.format_exception(error))]
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts += [str(one), repr(one), repr(vars(one))]
        todo += [one.__cause__, one.__context__]
    return "\n".join(texts)


def _faults(kind: str, key: str) -> dict[str, tuple[Any, bool]]:
    echo = {"error": {"message": f"Incorrect API key provided: {key}. Header {HEADER}.", "code": "invalid_api_key"}}
    echoed = json.dumps(echo).encode()
    return {
        "401 that echoes": (reply(echoed, status=401), False),
        "500 that echoes": (reply(f"<p>Bearer {key} {HEADER}</p>".encode(), status=500, kind="text/html"), False),
        "200 that echoes": (reply(echoed), False),
        "no JSON": (reply(f"{key} {HEADER}".encode()), False),
        "web page": (reply(f"{key} {HEADER}".encode(), kind="text/html"), True),
        "event that echoes": (stream(*good_events(kind)[:1], echo), True),
        "event that is no JSON": (stream(f"{{{key} {HEADER}"), True),
        "closed connection": (b"", False),
        "stalled stream": (stalling(stream()), True),
        "all is well": (as_json(good_body(kind)), False),
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", KEYS)
async def test_no_failure_and_no_log_shows_a_key(
    kind: str,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PLANTED_KEY", key)
    monkeypatch.setenv("PLANTED_HEADER", HEADER)
    caplog.set_level(logging.DEBUG)
    raised: list[str] = []

    for name, (send, streams) in _faults(kind, key).items():
        async with serving(send) as wire:
            entry = entry_for(
                kind,
                wire.url,
                api_key_env="PLANTED_KEY",
                headers_env={"X-Auth-Token": "PLANTED_HEADER"},
                timeout_s=1.0,
            )
            try:
                await ask(entry, streaming(streams=streams))
            except WfdslError as error:
                raised.append(_everything_about(error))
            else:
                assert name == "all is well"
            assert key in json.dumps(wire.requests[0].headers), "the server did get the key"

    printed = "".join(capsys.readouterr())
    everything = "\n".join([*raised, caplog.text, printed])
    assert len(raised) == len(_faults(kind, key)) - 1
    assert key not in everything
    assert HEADER not in everything


LONG = "zq9opaqueKEY0123456789abcdefghijklmnopqrstuvwxyz'ZYX\\"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [50, 77, 95])
async def test_a_key_that_a_shortened_quotation_cuts_is_hidden_whole(
    kind: str, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", LONG)
    said = "x" * (before - 1) + f" {LONG} has expired. " + "y" * 600
    page = f"<html><body>{said}</body></html>".encode()
    sent = [
        (reply(said.encode()), False),
        (stream(said), True),
        (reply(json.dumps({"detail": said}).encode(), status=500), False),
        (reply(json.dumps({"detail": [{"msg": said, "input": '"'}]}).encode(), status=422), False),
        (reply(said.encode(), status=401), True),
        (reply(page, status=403, kind="text/html"), True),
        (as_json({"error": {"message": "x" * (900 + before) + said}}), False),
    ]

    for send, streams in sent:
        async with serving(send) as wire:
            entry = entry_for(kind, wire.url, api_key_env="PLANTED_KEY")
            with pytest.raises(WfdslError) as raised:
                await ask(entry, streaming(streams=streams))
        shown = _everything_about(raised.value)
        assert not [length for length in range(8, len(LONG)) if LONG[:length] in shown]


HEADERS = "X-Leak: planted-header\nAuthorization: Bearer planted-header"
ENVIRONMENT = {
    **dict.fromkeys(("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"), HEADERS),
    **{name: f"planted-{name}" for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY")},
    **{name: f"planted-{name}" for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")},
    **dict.fromkeys(("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"), "http://127.0.0.1:9/planted"),
    "OWN_KEY": "own-key",
}


@pytest.mark.parametrize("provider", [*KINDS, "google"])
@pytest.mark.parametrize("keyed", [{}, {"api_key_env": "OWN_KEY"}], ids=["no key", "own key"])
async def test_nothing_that_the_environment_holds_for_a_providers_sdk_goes_to_another_server(
    provider: str, keyed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    kind = "chat" if provider == "google" else provider
    async with serving(as_json(good_body(kind))) as wire:
        entry = entry_for(kind, wire.url, headers={"X-Team": "blue"}, **keyed)
        await ask(entry.model_copy(update={"provider": "google"}) if provider == "google" else entry)

    (request,) = wire.requests
    assert "planted" not in json.dumps([request.path, request.headers])
    assert request.headers["x-team"] == "blue"
    assert request.headers.get("authorization") == ("Bearer own-key" if keyed else None)
    assert "x-api-key" not in request.headers


@pytest.mark.parametrize(
    ("provider", "host", "key", "told"),
    [
        ("openai", "api.openai.com", "OPENAI_API_KEY", True),
        ("openai", "api.openai.com", "OWN_KEY", False),
        ("openai", "api.openai.com.example", "OPENAI_API_KEY", False),
        ("google", "generativelanguage.googleapis.com", "GEMINI_API_KEY", False),
    ],
)
async def test_an_organization_goes_to_openai_itself_with_the_key_that_it_belongs_to(
    provider: str, host: str, key: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**ENVIRONMENT, "GEMINI_API_KEY": "own-key"}.items():
        monkeypatch.setenv(name, value)
    async with serving(as_json(good_body("chat"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        entry = WorkerEntry(name="w", provider=provider, model="m", base_url=f"http://{host}/v1", api_key_env=key)
        await ask(entry)

    (request,) = proxy.requests
    assert request.path == f"http://{host}/v1/chat/completions"
    account = {"openai-organization": "planted-OPENAI_ORG_ID", "openai-project": "planted-OPENAI_PROJECT_ID"}
    assert {name: value for name, value in request.headers.items() if name.startswith("openai-")} == (
        account if told else {}
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_the_query_of_a_base_url_comes_after_the_path(kind: str) -> None:
    async with serving(as_json(good_body(kind))) as wire:
        entry = entry_for(kind, wire.url)
        await ask(entry.model_copy(update={"base_url": f"{entry.base_url}?api-version=2024-05-01-preview&region=eu"}))
        await ask(entry)

    with_query, plain = (request.path for request in wire.requests)
    assert with_query == f"{plain}?api-version=2024-05-01-preview&region=eu"


@pytest.mark.parametrize(
    "url",
    [
        *(
            f"http://h/v1?api-version=1&{name}={KEYS[1]}"
            for name in ("api_key", "key", "subscription-key", "access_token", "sig", "code", "X-Auth")
        ),
        f"http://h/v1/@user:{KEYS[1]}@x",
        f"http://user:{KEYS[1]}@h",
        "socks5://h",
        "http://h:99999/v1",
        "http://",
        "http://h/v1#part",
        "http://h /v1",
        "http://h/v1?a=1&a=2",
    ],
)
def test_a_base_url_with_a_secret_or_that_cannot_be_right_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(UsageError, match=r"looks like a secret|password|not a URL|twice") as refused:
        WorkerEntry(name="w", provider="openai", model="m", base_url=url)

    assert KEYS[1] not in _everything_about(refused.value)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/planted0part0of0a0path", {}),
        ("?version=2024&route=planted0part0of0a0path", {}),
        ("", {"headers": {"X-Route": "planted0part0of0a0path"}}),
    ],
    ids=["path", "parameter", "header"],
)
async def test_an_error_that_quotes_a_long_part_of_the_address_or_a_header_does_not_show_it(
    path: str, fields: dict[str, Any]
) -> None:
    said = b'{"error": {"message": "no route for planted0part0of0a0path at version 2024"}}'
    async with serving(reply(said, status=404)) as wire:
        entry = entry_for("chat", wire.url, **fields)
        failure = await failure_of(entry.model_copy(update={"base_url": f"{entry.base_url}{path}"}))

    assert "planted" in f"{wire.requests[0]}"
    assert "no route for [key hidden] at version 2024" in str(failure)


@pytest.mark.parametrize("kind", KINDS)
async def test_no_pool_entry_or_worker_shows_a_key(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", KEYS[0])
    async with Pool([entry_for(kind, "http://127.0.0.1:9", api_key_env="PLANTED_KEY")]).open() as pool:
        worker: Any = pool.worker(0)
        shown = [repr(pool), repr(pool.entry(0)), repr(worker), repr(worker.worker), pool.entry(0).model_dump_json()]
        stored = pickle.dumps(pool)

    assert KEYS[0] not in "".join(shown)
    assert KEYS[0].encode() not in stored


@pytest.mark.parametrize("key", KEYS)
async def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", f"{key}\nsecond line")

    with pytest.raises(UsageError, match="the key alone") as refused:
        await ask(entry_for("chat", "http://127.0.0.1:9", api_key_env="PLANTED_KEY"))

    assert key not in _everything_about(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        f'api_key = "{KEYS[0]}"',
        f'api_key_env = "{KEYS[0]}"',
        f'headers = {{ Authorization = "Bearer {KEYS[1]}" }}',
        f'headers = {{ X-Whatever = "{KEYS[0]}" }}',
        f'headers = {{ X-Custom-Auth = "{KEYS[1]}" }}',
        f'headers = {{ Ocp-Apim-Subscription-Key = "{KEYS[1]}" }}',
        f'base_url = "https://host/v1?api_key={KEYS[1]}"',
        f'extra_body = {{ nested = [ {{ key = "{KEYS[2]}" }} ] }}',
        f'base_url = "https://user:{KEYS[1]}@host/v1"',
        f'description = "use {KEYS[2]}"',
    ],
)
def test_a_key_in_a_pool_file_is_refused_without_being_shown(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pool.toml"
    file.write_text(f'[pool]\n[[pool.workers]]\nname = "a"\nprovider = "openai"\nmodel = "m"\n{line}\n')

    code = main(["pools", "show", str(file)])

    shown = "".join(capsys.readouterr())
    assert code == 2
    assert "_env" in shown, "the message says where a key belongs"
    assert not [key for key in KEYS if key in shown]


def test_a_scrubber_hides_what_it_was_told_and_what_looks_like_a_key() -> None:
    scrub = Scrubber(["hunter2hunter2", None, ""])

    hidden = scrub("a hunter2hunter2 b sk-abcdefgh12345678 c Bearer abcdefgh12345678 d sk-proj-ab***********yz9 e")

    assert hidden == "a [key hidden] b [key hidden] c Bearer [key hidden] d [key hidden] e"
    assert "hunter2" not in repr(scrub)


def test_plain_words_are_no_keys() -> None:
    texts = [
        "a risk-based approach",
        "disk-usage",
        "ask-me-anything-you-like",
        "the basic idea",
        "task-oriented-planning",
    ]

    assert find_key(texts) is None
    assert [Scrubber()(text) for text in texts] == texts
