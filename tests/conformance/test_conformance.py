"""The public test set on this implementation, and on commands that get it wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.conformance.__main__ import answer_of, failures
from tests.conformance.cases import Case, cases
from tests.conformance.ours import answer

EVERY = list(cases())
OURS = [sys.executable, "-m", "tests.conformance.ours"]


def test_this_implementation_gives_every_result() -> None:
    assert {(case.form, case.profile) for case in EVERY} >= {("completion", "strict"), ("completion", "lenient")}
    assert len({case.id for case in EVERY}) == len(EVERY)
    assert [(case.id, what) for case, what, _ in failures(lambda case: answer(case.text, case.options), EVERY)] == []


def test_a_command_is_asked_with_the_text_on_standard_input() -> None:
    picked = [next(case for case in EVERY if case.verdict == each) for each in ("accept", "reject", "passthrough")]
    picked.append(next(case for case in EVERY if case.form == "wf"))

    assert list(failures(lambda case: answer_of(OURS, case), picked)) == []


def test_what_is_wrong_is_said() -> None:
    case = next(case for case in EVERY if case.workflow)
    wrong: list[dict[str, Any]] = [
        {"verdict": "reject", "workflow": None},
        {"verdict": "accept", "workflow": {**(case.workflow or {}), "model_id": [9]}},
        {"verdict": "accept", "workflow": case.workflow, "codes": []},
    ]
    coded = replace(case, codes=("list-missing",))

    def always(given: dict[str, Any]) -> Callable[[Case], dict[str, Any]]:
        return lambda _: given

    found = [what for given in wrong for _, what, _ in failures(always(given), [coded])]

    assert found == ["verdict", "workflow", "code"]
    assert answer_of([sys.executable, "-c", "print('no JSON')"], case)["verdict"] is None
