"""This implementation as a command of the test set, and an example of one."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from wfdsl import WorkflowError
from wfdsl.api import analyze


def answer(text: str, options: list[str]) -> dict[str, Any]:
    """What wfdsl says about a text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--form")
    parser.add_argument("--profile")
    parser.add_argument("--pool-size", type=int)
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--recursion", action="store_true")
    args = parser.parse_args(options)
    limit: Any = {} if args.max_steps is None else {"max_steps": args.max_steps}
    checked = analyze(
        text, form=args.form, profile=args.profile, pool=args.pool_size, recursion=args.recursion, **limit
    )
    verdict = "reject" if not checked.ok else "passthrough" if checked.passthrough else "accept"
    try:
        lists = None if checked.workflow is None else checked.workflow.to_lists()
    except WorkflowError:  # what three lists cannot say: `by each worker` without a pool, settings of a step
        lists = None
    return {"verdict": verdict, "workflow": lists, "codes": sorted({found.code for found in checked.diagnostics})}


if __name__ == "__main__":
    print(json.dumps(answer(sys.stdin.buffer.read().decode("utf-8", "surrogatepass"), sys.argv[1:])))
