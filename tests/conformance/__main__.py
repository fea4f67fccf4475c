"""Run the cases on an implementation, or print them: `python -m tests.conformance COMMAND...`, or `--cases`.

The command is started once for each case, with the options of `Case.options` after it and the text on standard input.
It writes one JSON object: `verdict` (`accept`, `reject` or `passthrough`), `workflow` (the three lists, or null) and
`codes` (optional). `python -m tests.conformance.ours` is such a command.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tests.conformance.cases import Case, cases

Answer = dict[str, Any]


def answer_of(command: list[str], case: Case) -> Answer:
    """What a command says about a case; one that fails or writes no object has no verdict."""
    done = subprocess.run(
        [*command, *case.options], input=case.text.encode(errors="surrogatepass"), capture_output=True, check=False
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = None
    return (
        found if isinstance(found, dict) else {"verdict": None, "stderr": done.stderr[-300:].decode(errors="replace")}
    )


def failures(answer: Callable[[Case], Answer], found: Iterable[Case]) -> Iterable[tuple[Case, str, Answer]]:
    """The cases that got a wrong verdict, workflow or code, with what was wrong."""
    for case in found:
        given = answer(case)
        if given.get("verdict") != case.verdict:
            yield case, "verdict", given
        elif case.workflow is not None and given.get("workflow") != case.workflow:
            yield case, "workflow", given
        elif case.codes and "codes" in given and not set(case.codes) & set(given["codes"]):
            yield case, "code", given


def main() -> int:
    """Print the cases, or the results of a command; 1 if it failed in a case."""
    if sys.argv[1:] == ["--cases"]:
        print("\n".join(case.to_json() for case in cases()))
        return 0
    every = list(cases())
    wrong: Counter[str] = Counter()
    for case, what, given in failures(lambda case: answer_of(sys.argv[1:], case), every):
        wrong[what] += 1
        print(f"{case.id}: wrong {what}: {json.dumps(given, ensure_ascii=False)[:200]}")
    print(f"{len(every) - wrong.total()} of {len(every)} cases right; wrong: {dict(wrong) or 'none'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
