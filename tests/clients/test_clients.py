"""Clients of others against `wfdsl serve`; `make clients` installs them, and writes what works into the table."""

from __future__ import annotations

import pytest

from .conftest import Tried, version_of
from .table import CELLS, CLIENTS, YES, Client, problem

TRIED = [(client, cell) for client in CLIENTS for cell in CELLS if cell not in client.lacks]


@pytest.mark.parametrize(("client", "cell"), TRIED, ids=[f"{client.id}-{cell}" for client, cell in TRIED])
def test_a_client_works(client: Client, cell: str, tried: Tried) -> None:
    tried.provider.bodies.clear()
    tried.provider.hung_up.clear()

    facts = tried.ask(client, cell)

    hung_up = cell == "cancel" and tried.provider.hung_up.wait(30)
    asked = [body["model"] for body in tried.provider.bodies]
    wrong = problem(cell, facts, asked, hung_up=hung_up)
    remarks = [facts[name] for name in ("remark",) if name in facts]
    if "worker ann" in facts.get("progress", ""):
        remarks.append("with progress")
    found = tried.results.setdefault(client.id, {"version": version_of(client)})
    found[cell] = f"no: {wrong}" if wrong else ", ".join([YES, *remarks])
    assert not wrong
