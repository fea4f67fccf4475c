"""Pool files, and where pools are found by name."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.errors import UsageError
from wfdsl.protocols import Call
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool, parse_pool, pool_names

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """
[pool]
name = "small"
max_reply_chars = 1000

[pool.defaults]
provider = "openai"
model = "m"
temperature = 0
limits = { requests_per_minute = 60, concurrency = 4 }

[[pool.workers]]
name = "a"
tags = ["x", "y"]
prices = { input = 1, output = 2.5, source = "list", as_of = 2026-11-20 }

[[pool.workers]]
name = "b"
model = "n"
temperature = 0.7
limits = { tokens_per_minute = 1000 }
fallback = "a"
"""


def test_a_pool_file_gives_workers_in_order_with_shared_defaults() -> None:
    pool = parse_pool(SMALL, "small.toml")
    a, b = pool

    assert (pool.name, pool.settings.max_reply_chars, pool.indices, pool.names) == ("small", 1000, (0, 1), ("a", "b"))
    assert (a.model, a.temperature, a.tags, a.limits.concurrency) == ("m", 0, ("x", "y"), 4)
    assert (b.model, b.temperature, b.tags, b.fallback) == ("n", 0.7, (), "a")
    assert (b.limits.tokens_per_minute, b.limits.concurrency) == (1000, None)
    assert a.prices == Prices(input=1.0, output=2.5, source="list", as_of=dt.date(2026, 11, 20))
    assert b.prices is None


def test_a_pool_may_stand_among_the_tables_of_other_commands() -> None:
    pool = parse_pool(f"[budget]\nusd = 1\n[run]\nwhatever = true\n{SMALL}", "all.toml")

    assert len(pool) == 2


WORKER = '[pool]\n[[pool.workers]]\nname = "a"\nprovider = "openai"\n'
PROBLEMS = [
    ("[pool]\nname = \n", "not a TOML file: .*line 2"),
    ("", r"there is no table \[pool\]"),
    ("pool = 5", r"there is no table \[pool\]"),
    ("[pool]\n[pols]", 'has no key "pols". Did you mean pool'),
    ('[pool]\nmax_reply_char = 5\n[[pool.workers]]\nname="a"', 'pool has no key "max_reply_char"..*max_reply_chars'),
    ("[pool]", r'the pool "p" has no workers: give it at least one \[\[pool.workers\]\]'),
    ("[pool]\nworkers = 5", r"write \[\[pool.workers\]\]"),
    ("[pool]\ndefaults = 5", "pool.defaults must be a table, not int"),
    ("[pool.defaults]\ntemprature = 1", 'pool.defaults has no key "temprature"..*temperature'),
    (f"{WORKER}temprature = 1", r'worker 0 \("a"\) has no key "temprature". Did you mean temperature'),
    (f"{WORKER}zzz = 1", 'has no key "zzz"'),
    (f'{WORKER}temperature = "hot"', r'worker 0 \("a"\): temperature: .*number'),
    (f"{WORKER}temperature = 3", "temperature: must be at most 2"),
    (f"{WORKER}temperature = true", "temperature"),
    (f"{WORKER}max_tokens = 0", "max_tokens: must be greater than 0"),
    (f"{WORKER}max_tokens = 1.5", "max_tokens"),
    (f"{WORKER}limits = {{ rpm = 3 }}", 'limits has no key "rpm"'),
    (f"{WORKER}limits = {{ concurrency = 0 }}", "limits.concurrency: must be greater than 0"),
    (f"{WORKER}limits = 5", "limits must be a table, not int"),
    (f"{WORKER}prices = {{ input = 1 }}", "prices.output: is missing"),
    (f"{WORKER}prices = {{ input = -1, output = 1 }}", "prices.input"),
    (f"{WORKER}prices = {{ input = nan, output = 1 }}", "prices.input"),
    (f"{WORKER}timeout_s = inf", "timeout_s"),
    (f'{WORKER}base_url = "localhost:8000"', "base_url: this is not a URL"),
    (f'{WORKER}fallback = "b"', 'worker "a" of the pool "p" falls back on "b".*there is: none'),
    (f'{WORKER}fallback = "a"', 'falls back on "a"'),
    (f'{WORKER}[[pool.workers]]\nname = "a"\nprovider = "openai"', 'two workers called "a"'),
    ('[pool]\n[[pool.workers]]\nname = "a"', r'worker 0 \("a"\): provider: is missing'),
    ('[pool]\n[[pool.workers]]\nprovider = "openai"', "worker 0: name: is missing"),
    ('[pool]\n[[pool.workers]]\nname = "a"\nprovider = "opnai"', 'no provider "opnai". Did you mean openai'),
    ('[pool]\n[[pool.workers]]\nname = " a"\nprovider = "openai"', "name: a name has no"),
    (f'{WORKER}headers = {{ "X-Ä" = "1" }}', "printable ASCII"),
]


@pytest.mark.parametrize(("text", "message"), PROBLEMS)
def test_a_wrong_pool_file_says_where_what_and_what_was_meant(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        parse_pool(text, "p.toml")

    assert str(refused.value).startswith("p.toml")
    assert "\n" not in str(refused.value)


def test_files_that_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "huge.toml").write_bytes(b"#" * 2_000_000)

    (tmp_path / "folder.toml").mkdir()

    for name, message in [
        ("missing.toml", "No such file"),
        (".toml", "No such file"),
        ("binary.toml", "not UTF-8 text"),
        ("huge.toml", "at most 1,048,576 characters"),
        ("folder.toml", "directory"),
    ]:
        with pytest.raises(UsageError, match=message):
            Pool.load(str(tmp_path / name))


@pytest.mark.parametrize("name", ["local", "paper", "paper-unconstrained"])
def test_shipped_pools_load_and_name_no_brand_to_a_conductor(name: str) -> None:
    brands = ("gpt", "openai", "claude", "anthropic", "gemini", "gemma", "google", "qwen", "deepseek", "llama", "smol")

    pool = Pool.load(name)

    assert name in pool_names()
    assert pool.name == name
    for entry in pool:
        assert entry.description
        assert not [brand for brand in brands if brand in entry.description.lower()]


def test_the_paper_pool_is_the_papers_controlled_setting() -> None:
    pool = Pool.load("paper")

    assert len(pool) == 7
    assert {entry.max_tokens for entry in pool} == {4096}
    assert {entry.temperature for entry in pool if entry.name != "gpt-5"} == {0.2}
    settings: dict[str, Any] = {entry.name: entry for entry in pool}
    assert settings["gpt-5"].reasoning_effort == "minimal"
    assert settings["gemini-2.5-pro"].thinking_budget == 128
    assert settings["claude-sonnet-4"].thinking_budget == 0
    assert all(entry.prices is not None for entry in pool)


@pytest.mark.parametrize("name", ["paper", "paper-unconstrained"])
def test_a_template_without_keys_says_which_variable_to_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")
    for variable in variables:
        monkeypatch.delenv(variable, raising=False)
    pool = Pool.load(name)

    for index in pool.indices:
        with pytest.raises(UsageError, match=f"set the environment variable {variables[min(index, 3)]}"):
            pool.worker(index)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that brings a provider and a family of pools."""
    (tmp_path / "plug_in_for_test.py").write_text(
        "from wfdsl.workers.pool import Pool, WorkerEntry\n"
        "from wfdsl.workers.scripted import ScriptedWorker\n"
        "def build(entry, bench):\n"
        "    return ScriptedWorker([f'plugged {entry.model}'])\n"
        "def pool(name):\n"
        "    return Pool([WorkerEntry(name=name, provider='plugged', model='m')])\n"
        "def wrong(name):\n"
        "    return 5\n"
        "class Listing:\n"
        "    __call__ = staticmethod(pool)\n"
        "    def names(self):\n"
        "        return ['listed/easy', 'listed/hard']\n"
        "listing = Listing()\n"
    )
    (tmp_path / "failing_for_test.py").write_text("1 / 0\n")
    info = tmp_path / "plug_in_for_test-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in-for-test\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[wfdsl.workers]\nplugged = plug_in_for_test:build\nfailing = failing_for_test:build\n"
        "[wfdsl.pools]\nfamily = plug_in_for_test:pool\nlisted = plug_in_for_test:listing\n"
        "wrong = plug_in_for_test:wrong\n"
        "broken = plug_in_for_test:nothing\nabsent = no_such_module_for_test:pool\nfailing = failing_for_test:pool\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "plug_in_for_test", raising=False)


@pytest.mark.usefixtures("plugin")
async def test_plug_ins_bring_pools_and_providers_and_may_list_the_names_of_pools() -> None:
    pool, names = Pool.load("family/hard"), pool_names()

    assert pool.names == ("family/hard",)
    assert (await pool.worker(0)(Call(({"role": "user", "content": "?"},)))).text == "plugged m"
    assert {"family", "broken", "absent", "failing"} <= set(names)
    assert [name for name in names if name.startswith("listed")] == ["listed/easy", "listed/hard"]
    assert Pool.load("listed/hard").names == ("listed/hard",)
    with pytest.raises(UsageError, match="failing_for_test"):
        Pool([WorkerEntry(name="a", provider="failing", model="m")]).worker(0)


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wrong", '"wrong"'),
        ("broken", "plug_in_for_test"),
        ("absent", "no_such_module_for_test"),
        ("failing", "failing_for_test"),
    ],
)
def test_a_plug_in_that_brings_no_pool_is_named(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Pool.load(name)
