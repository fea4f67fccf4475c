"""The table of a grammar is made once and kept, and what is kept is never trusted more than the grammar file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wfdsl.language import grammar
from wfdsl.language.grammar import GrammarData, grammar_folder, load_grammar_data, make_grammar_data


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache" / "grammars"
    monkeypatch.setattr(grammar, "_cache_folder", lambda: folder)
    return folder


def _load(folder: Path | None = None) -> GrammarData:
    return load_grammar_data("conductor.lark", start="completion", also=["cut"], folder=folder)


def _refuse(*_: object, **__: object) -> GrammarData:
    raise AssertionError("the table is made again")


def _made() -> GrammarData:
    return make_grammar_data("conductor.lark", start="completion", also=["cut"], folder=grammar_folder())


def test_a_table_is_made_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _load()
    monkeypatch.setattr(grammar, "make_grammar_data", _refuse)

    second = _load()

    assert first["terminals"] == second["terminals"] == _made()["terminals"]
    assert list(second["terminals"]) == list(first["terminals"]), "the order is that of priority"
    assert second["table"]["actions"] == first["table"]["actions"]
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"terminals": {}}', b"\xff\xfe"])
def test_a_damaged_entry_is_made_again(cache: Path, damage: bytes) -> None:
    whole = _load()
    entry = next(cache.iterdir())
    entry.write_bytes(damage)

    again = _load()

    assert again["terminals"] == whole["terminals"]
    assert entry.stat().st_size > len(damage)


def test_a_changed_grammar_file_is_another_entry(cache: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(grammar_folder(), changed)
    _load(changed)
    text = (changed / "conductor.lark").read_text("utf-8")
    (changed / "conductor.lark").write_text(text.replace("model_id(?!", "worker_id(?!"), "utf-8")

    data = _load(changed)

    assert "worker_id" in data["terminals"]["MODEL_ID"]
    assert len(list(cache.iterdir())) == 2


def test_a_folder_that_cannot_be_made_costs_time_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(grammar, "_cache_folder", lambda: tmp_path / "file" / "grammars")

    data = _load()

    assert data["terminals"] == _made()["terminals"]


def test_a_user_without_a_home_gets_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    _load()

    assert list(tmp_path.iterdir()) == []


def test_old_entries_go(cache: Path) -> None:
    cache.mkdir(parents=True)
    for number in range(20):
        (cache / f"{number}.json").write_text("{}")

    _load()

    assert len(list(cache.iterdir())) == 8
