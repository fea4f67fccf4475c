"""Write the generated parts of the documentation: `python -m tests.docs.generate`, which is `make docs`.

A page says where they stand: what is between `<!-- generated: NAME -->` and `<!-- end -->` is regenerated, the rest is
left alone. A test asserts that nothing would change.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from .pages import ROOT, pages, read_page
from .write_baselines import baseline_table, parameter_table
from .write_cli import common_options, exit_codes, options, train_options
from .write_clients import client_table, suite_table
from .write_codes import code_list, code_pages
from .write_config import keys
from .write_grammar import literate
from .write_language import limits, repairs, static_checks
from .write_llms import LLMS, llms
from .write_pools import endings
from .write_python import public_names, rl_names, testing_names
from .write_train import train_keys

if TYPE_CHECKING:
    from collections.abc import Callable

REGIONS: dict[str, Callable[[], str]] = {
    "baseline-parameters": parameter_table,
    "baselines": baseline_table,
    "cli": options,
    "cli-common": common_options,
    "cli-train": train_options,
    "clients": client_table,
    "open-responses": suite_table,
    "code-list": code_list,
    "codes": code_pages,
    "conductor.lark": lambda: literate("conductor.lark"),
    "config-keys": keys,
    "endings": endings,
    "exit-codes": exit_codes,
    "limits": limits,
    "literals.lark": lambda: literate("literals.lark"),
    "public-names": public_names,
    "repairs": repairs,
    "rl-names": rl_names,
    "static-checks": static_checks,
    "testing-names": testing_names,
    "train-keys": train_keys,
    "workflow.lark": lambda: literate("workflow.lark"),
}
_REGION = re.compile(r"(?P<head><!-- generated: (?P<name>[\w.-]+) -->\n).*?(?P<foot><!-- end -->)", re.DOTALL)


def regenerated(text: str) -> str:
    """A page with its generated parts regenerated.

    Raises:
        KeyError: the page names a part that nothing generates.
    """
    return _REGION.sub(
        lambda region: f"{region['head']}\n{REGIONS[region['name']]().strip()}\n\n{region['foot']}", text
    )


def generated_paths() -> list[str]:
    """Every page, and llms.txt, from the root of the repository."""
    return [*pages(), LLMS]


def generated(path: str) -> str:
    """What a page or llms.txt should hold."""
    return llms() if path == LLMS else regenerated(read_page(path))


def main() -> int:
    """Write what is not current."""
    for path in generated_paths():
        file, text = ROOT / path, generated(path)
        if not file.exists() or file.read_text("utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8", newline="\n")
            print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
