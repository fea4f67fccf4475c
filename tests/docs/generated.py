"""The generated parts of the documentation, which the site has and the Markdown of the repository has not.

A page says where one stands, with `<!-- generated: NAME -->` on a line of its own.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from tests.clients import table as clients

from .notebook import as_page
from .pages import read_page
from .write_cli import common_options, exit_codes, options, train_options
from .write_codes import code_list, code_pages
from .write_config import keys
from .write_grammar import literate
from .write_python import public_names, rl_names, testing_names
from .write_tables import baseline_table, endings, limits, parameter_table, repairs, static_checks
from .write_train import train_keys

if TYPE_CHECKING:
    from collections.abc import Callable

REGIONS: dict[str, Callable[[], str]] = {
    "baseline-parameters": parameter_table,
    "baselines": baseline_table,
    "cli": options,
    "cli-common": common_options,
    "cli-train": train_options,
    "clients": lambda: "\n".join(clients.rows()),
    "open-responses": lambda: "\n".join(clients.suite_rows()),
    "code-list": code_list,
    "codes": code_pages,
    "conductor.lark": lambda: literate("conductor.lark"),
    "config-keys": keys,
    "endings": endings,
    "exit-codes": exit_codes,
    "limits": limits,
    "literals.lark": lambda: literate("literals.lark"),
    "notebook": as_page,
    "public-names": public_names,
    "repairs": repairs,
    "rl-names": rl_names,
    "static-checks": static_checks,
    "testing-names": testing_names,
    "train-keys": train_keys,
    "workflow.lark": lambda: literate("workflow.lark"),
}
MARK = re.compile(r"^<!-- generated: (?P<name>[\w.-]+) -->$", re.MULTILINE)


@cache
def page_text(page: str) -> str:
    """A page as the site has it.

    Raises:
        KeyError: the page names a part that nothing generates.
    """
    return MARK.sub(lambda mark: REGIONS[mark["name"]]().strip(), read_page(page))
