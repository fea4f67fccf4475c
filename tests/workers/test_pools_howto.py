"""docs/howto/pools.md: its pool files mean what they say, and every setting is in its table."""

from __future__ import annotations

import re
from pathlib import Path

from wfdsl.workers.entry import PoolSettings, WorkerEntry
from wfdsl.workers.pool import parse_pool
from wfdsl.workers.registry import providers

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "pools.md").read_text(encoding="utf-8")


def test_pool_files_are_valid() -> None:
    files = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    own, key, azure = (parse_pool(text, "example.toml") for text in files)

    assert own.names == ("gpt", "claude", "qwen")
    assert key.entry(0).api_key_env == "OPENROUTER_API_KEY"
    assert azure.entry(0).headers_env == {"api-key": "AZURE_OPENAI_API_KEY"}


def test_every_setting_and_provider_is_in_the_table() -> None:
    table = PAGE[PAGE.index("| key | meaning |") : PAGE.index("## Keys")]
    documented = set(re.findall(r"`([a-z_]+)`", table))

    known = {*WorkerEntry.model_fields, *PoolSettings.model_fields, *providers()}

    assert known - documented == {"function", "gym"}, "one is for pools of Python, the other a plug-in's"
