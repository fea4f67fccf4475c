"""The cut model reads the gym's texts as the whole one does, and models are measured by exact values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

gguf = pytest.importorskip("gguf", reason="needs the extra rl")
transformers = pytest.importorskip("transformers", reason="needs the extra rl")

from wfdsl.language.workflow import Step, Workflow  # noqa: E402
from wfdsl.workers.model_folder import shipped_file  # noqa: E402
from wfdsl_rl.gym import headline  # noqa: E402
from wfdsl_rl.gym.measure import Asked, Measured, gain, measure  # noqa: E402
from wfdsl_rl.gym.questions import KINDS, SPLITS, Kind, draw  # noqa: E402
from wfdsl_rl.gym.start import cut_model, sft_rows  # noqa: E402

pytestmark = pytest.mark.local


@pytest.fixture(scope="module", autouse=True)
def whole_model_is_read_once() -> Iterator[None]:
    """transformers reads the file for the settings, for the tokenizer and for the weights, ten seconds each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf, "GGUFReader", cache(gguf.GGUFReader))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one layer."""
    folder = tmp_path_factory.mktemp("cut") / "model"
    cut_model(folder, 1, sft_rows(500))
    return folder


def test_the_cut_tokenizer_splits_the_gym_s_texts_as_the_whole_one(folder: Path) -> None:
    file = shipped_file()
    cut = transformers.AutoTokenizer.from_pretrained(folder)
    whole = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    assert len(cut) < len(whole) / 20
    for kind in KINDS:
        for split in SPLITS:
            for item in islice(draw(kind, split, 7), 50):
                asked = f"Question: {item.text}"  # as the prompt has it
                assert cut.tokenize(asked) == whole.tokenize(asked)


def test_a_model_that_writes_no_workflow_is_worth_nothing(folder: Path) -> None:
    found = measure(str(folder), questions=8, seed=1).to_dict()
    assert (found["questions"], found["accuracy"], found["valid"]) == (8, 0.0, 0.0)


def asked(kind: Kind, value: float, worker: int, offered: tuple[int, ...] = ()) -> Asked:
    return Asked(kind, "", value, Workflow((Step(worker, "Solve it."),)), offered)


def test_a_gain_is_paired_by_question() -> None:
    before = Measured(tuple(asked("sums", value, 0) for value in (0.2, 0.4, 0.6)))
    after = Measured(tuple(asked("sums", value, 1) for value in (0.3, 0.5, 0.7)))
    difference, error = gain(before, after)
    assert difference == pytest.approx(0.1)
    assert error == pytest.approx(0.0, abs=1e-9)


def test_figures_of_drawn_pools_and_second_rounds() -> None:
    two = [replace(asked(kind, 0.5, 1, (0, 1)), revised=0.6) for kind in KINDS]  # alder is the best of two
    three = [replace(asked(kind, 0.4, 1, (1, 3, 4)), revised=0.4, kept=1.0) for kind in KINDS]
    found = Measured((*two, *three)).to_dict()
    assert found["by_size"][2]["over_best_worker"] == pytest.approx(0.5 - 0.45)
    assert found["by_size"][3]["best_of_each_kind_in_one_call"] == pytest.approx((0.76 + 0.32 + 0.90 + 0.92) / 4)
    assert found["second_round"]["gain"] == pytest.approx(0.05)
    assert found["second_round"]["kept"] == dict.fromkeys(KINDS, 0.5)


def test_a_model_is_measured_on_drawn_pools(folder: Path) -> None:
    found = measure(str(folder), questions=16, seed=1, max_steps=1, sizes=(2, 5), newcomer="rowan").to_dict()
    assert {size: each["questions"] for size, each in found["by_size"].items()} == {2: 8, 5: 8}
    assert found["second_round"]["gain"] == 0.0


def test_exact_values_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headline, "MAX_STEPS", 2)  # three take as long as a training

    exact = headline.exact_values()
    assert exact["best_worker"] < exact["best_constant"] < exact["best_of_each_kind_in_one_call"] < exact["optimum"]
