"""Adapters to training engines, each with the real package in an environment of its own: `make engines`."""

import os
from pathlib import Path

from tests.docs.pages import ROOT

HERE = Path(__file__).parent
ENVIRONMENTS = Path(os.environ.get("WFDSL_ENGINES", ROOT / ".venv-engines"))
"""One for each engine."""
