"""Vectors of texts: near for texts that are alike, and the same every time."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from wfdsl.evaluation.baselines.embeddings import embed, nearest

TEXTS = ["How much is 3 + 4?", "How much is 5 + 6?", "Which element is written Co?", "Which element is written Fe?"]


def test_texts_that_are_alike_are_near() -> None:
    places = embed(TEXTS)

    assert [nearest(place, places, 2)[1] for place in places] == [1, 0, 3, 2]


def test_vectors_have_length_one_and_an_empty_text_has_none() -> None:
    lengths = np.linalg.norm(embed([*TEXTS, ""]), axis=1)

    assert lengths == pytest.approx([1, 1, 1, 1, 0])


def test_a_vector_is_the_same_in_every_process() -> None:
    found = np.sign(embed(["a b c"])[0]).astype("int8").tobytes()

    assert hashlib.sha256(found).hexdigest()[:16] == "ec504e2365a02e17"
