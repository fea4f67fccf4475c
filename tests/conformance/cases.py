"""The cases: a text, how it is read, and the result that every implementation must give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from tests.language.test_completion_corpus import CODES_OF, PROFILES, REPAIRS, expected_of, text_of
from tests.language.test_completion_corpus import cases as completions
from wfdsl.language.codes import CODES

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case."""

    id: str
    form: str
    """`completion` or `wf`."""
    profile: str
    """`strict` or `lenient`; workflow files are the same in both."""
    pool_size: int | None
    """The number of workers; null: not known."""
    max_steps: int | None
    """The most steps; null: the default of the form."""
    text: str
    verdict: str
    """`accept`, `reject` or `passthrough` (three empty lists in a later round)."""
    workflow: dict[str, Any] | None = None
    """The three lists, where the verdict is `accept` and the texts are compared exactly."""
    codes: tuple[str, ...] = ()
    """One of these must be among the codes; empty: not compared."""

    @property
    def options(self) -> list[str]:
        """What follows the command."""
        found = ["--form", self.form, "--profile", self.profile]
        found += [] if self.pool_size is None else ["--pool-size", str(self.pool_size)]
        found += [] if self.max_steps is None else ["--max-steps", str(self.max_steps)]
        return [*found, "--recursion"] if self.verdict == "passthrough" else found

    def to_json(self) -> str:
        """The case as a line."""
        return json.dumps(asdict(self))


def cases() -> Iterator[Case]:
    """All cases."""
    yield from _completions()
    for line in (HERE / "workflows.jsonl").read_text("utf-8").splitlines():
        case = {"pool_size": 3, **json.loads(line)}
        yield Case(form="wf", profile="strict", max_steps=None, verdict="accept", **case)
    for code in CODES.values():
        if code.form == "wf" and code.wrong:
            verdict = "reject" if code.kind == "error" else "accept"
            how: dict[str, Any] = {"form": "wf", "profile": "strict", "pool_size": None, "max_steps": None}
            yield Case(id=f"{code.name}-wrong", text=code.wrong, verdict=verdict, codes=(code.name,), **how)
            yield Case(id=f"{code.name}-right", text=code.right, verdict="accept", **how)


def _completions() -> Iterator[Case]:
    for case, profile in product(completions(), PROFILES):
        if "names" in case:
            continue  # a pool of names is not a number of workers
        expected = expected_of(case, profile)
        verdict, codes, workflow = "reject", tuple(sorted(REPAIRS)), None
        if expected is not None:
            verdict = expected["verdict"]
            reasons = [expected["reason"], *expected["reason_alt"]] if verdict == "reject" else []
            codes = tuple(sorted({code for reason in reasons for code in CODES_OF[reason]}))
            codes = codes or tuple(expected.get("repairs", ()))
            if verdict == "accept" and expected["compare"] == "exact":
                workflow = {name: expected[name] for name in ("model_id", "subtasks", "access_list")}
        yield Case(
            id=f"{case['id']}-{profile}",
            form="completion",
            profile=profile,
            pool_size=case["pool_size"],
            max_steps=case["max_steps"],
            text=text_of(case),
            verdict=verdict,
            workflow=workflow,
            codes=codes,
        )
