"""`wfdsl.testing` as its users meet it: what it needs, and what it draws."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wfdsl
from wfdsl import Step, Workflow
from wfdsl.api import analyze
from wfdsl.language.check import live_steps
from wfdsl.language.tree import ALL
from wfdsl.testing import Written, completions, near_misses, repairable_completions, workflow_files, workflows
from wfdsl.testing.completion_writer import ALWAYS_POSSIBLE, SOMETIMES_POSSIBLE, write_completion
from wfdsl.testing.file_writer import write_file
from wfdsl.testing.generators import Choices

PLAN = Workflow((Step(2, 'Say "it\'s\n42".'), Step(0, "C:\\new", (0,)), Step(1, "é😀\ufffd", ALL)))


@cache
def samples(write: Callable[[Choices, Workflow], Written], workflow: Workflow) -> list[str]:
    """Many texts of a workflow, always the same ones."""
    return [write(Choices(Random(number)), workflow).text for number in range(1500)]


def test_without_hypothesis_workers_still_work_and_strategies_say_what_to_install() -> None:
    code = (
        "import sys, wfdsl, wfdsl.testing; wfdsl.analyze('x'); assert 'hypothesis' not in sys.modules\n"
        "sys.modules['hypothesis'] = None\n"
        "from wfdsl.testing import ScriptedWorker, check_worker\n"
        "try:\n    from wfdsl.testing import completions\n"
        "except ImportError as error:\n    print(error)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert "pip install hypothesis" in done.stdout


@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3))
def test_workflows_keep_to_what_was_asked(data: st.DataObject, pool_size: int, least: int, more: int) -> None:
    strategy = workflows(pool_size=pool_size, min_steps=least, max_steps=least + more, dead_steps=False)

    workflow = data.draw(strategy)

    assert least <= len(workflow) <= least + more
    assert all(isinstance(step.worker, int) and 0 <= step.worker < pool_size for step in workflow)
    assert all(step.subtask.strip() for step in workflow)
    assert live_steps([workflow.sees(step) for step in range(len(workflow))]) == set(range(len(workflow)))


def test_workflows_of_every_kind_are_drawn() -> None:
    kinds: Counter[str] = Counter()

    @given(workflows())
    @settings(max_examples=150)
    def look(workflow: Workflow) -> None:
        kinds["several steps"] += len(workflow) > 1
        kinds["all"] += workflow[len(workflow) - 1].access == ALL
        kinds["full list"] += workflow[-1].access == tuple(range(len(workflow) - 1)) != ()
        live = live_steps([workflow.sees(step) for step in range(len(workflow))])
        kinds["dead"] += len(live) < len(workflow)

    look()

    assert min(kinds[name] for name in ("several steps", "all", "full list", "dead")) > 5


@pytest.mark.parametrize(("pool_size", "min_steps", "max_steps"), [(0, 1, 5), (1, 0, 5), (1, 3, 2)])
def test_workflows_that_cannot_be_are_refused_at_once(pool_size: int, min_steps: int, max_steps: int) -> None:
    with pytest.raises(ValueError, match="workflows need"):
        workflows(pool_size=pool_size, min_steps=min_steps, max_steps=max_steps)


@pytest.mark.parametrize(
    "pattern",
    [
        r"<think>", r"</think>", r"```", r'"model_id" ?:', r"'model_id' ?:", r"\*\*model_id", r"`model_id`", "：",
        r"model_id ?: ?\w", r"[rR]['\"]", r"'''", r'"""', r"\\N\{", r"\\u[0-9a-f]{4}", r"\\x[0-9A-F]", r"#", r"\\\n",
        r"\(\s*['\"]", r",\s*\]", r"int, \.\.\.", r"model_id = \[4, 4\]", r"subtasks[\s\S]*model_id",
        r"would be cheaper", r"['\"] ['\"]",
    ],
)  # fmt: skip
def test_completions_show_each_feature_of_the_language(pattern: str) -> None:
    assert any(re.search(pattern, text) for text in samples(write_completion, PLAN))


def test_the_lists_of_a_completion_count_whatever_surrounds_them() -> None:
    read = map(analyze, samples(write_completion, PLAN))

    assert {each.workflow for each in read if "lists-ambiguous" not in repr(each)} == {PLAN}


@given(completions(PLAN), workflow_files(PLAN))
def test_texts_of_a_workflow_mean_that_one(written: Written, file: Written) -> None:
    assert written.workflow == PLAN
    assert written.repairs == frozenset()
    assert wfdsl.parse(written.text) == PLAN
    assert analyze(file.text, form="wf").raise_for_errors().workflow == PLAN


@given(completions(workflows(max_steps=2), surroundings=False))
def test_completions_without_surroundings_begin_and_end_with_the_lists(written: Written) -> None:
    stripped = written.text.strip(" \n{}'\"`*-#1.")

    assert stripped.startswith(("model_id", "subtasks", "access_list", "plan.", "["))
    assert wfdsl.parse(written.text) == written.workflow


def test_every_repair_is_drawn() -> None:
    seen: Counter[str] = Counter()

    @given(repairable_completions(PLAN))
    @settings(max_examples=300)
    def look(written: Written) -> None:
        seen.update(written.repairs)

    look()

    assert set(seen) == set(ALWAYS_POSSIBLE) | set(SOMETIMES_POSSIBLE)


def test_near_misses_are_valid_and_invalid() -> None:
    verdicts: Counter[bool] = Counter()

    @given(near_misses())
    @settings(max_examples=150)
    def look(text: str) -> None:
        verdicts[wfdsl.analyze(text, profile="lenient").ok] += 1

    look()

    assert verdicts[True] > 20
    assert verdicts[False] > 50


@given(near_misses(st.just("step a by 0: 'x'")))
def test_near_misses_happen_to_the_texts_that_they_are_given(text: str) -> None:
    assert len(text) < 120


@pytest.mark.parametrize("subtask", ["\\{", "\\}", "\\{x}", "\\N{BULLET}", "a\\{{b", "{\\"])
def test_workflow_files_double_every_brace_that_is_text(subtask: str) -> None:
    workflow = Workflow((Step(0, subtask),))

    for text in set(samples(write_file, workflow)):
        assert analyze(text, form="wf").raise_for_errors().workflow == workflow


@pytest.mark.parametrize("pattern", ["copies[^:]*[2-9]", "sees nothing", "title", "#", "sees all", r"étape", "wfdsl 1"])
def test_workflow_files_show_each_feature_that_needs_no_pool(pattern: str) -> None:
    same = Step(1, "Try.", (0,))
    workflow = Workflow((Step(0, "Plan."), same, same, Step(0, "End.", ALL)))

    assert any(re.search(pattern, text) for text in samples(write_file, workflow))


@pytest.mark.parametrize("step", [Step("solver", "x"), Step(0, "x", (), 2)])
def test_a_workflow_that_only_a_pool_can_read_is_refused(step: Step) -> None:
    with pytest.raises(ValueError, match="indices"):
        write_file(Choices(Random(0)), Workflow((step,)))


def test_the_first_example_pays_for_no_imports() -> None:
    code = """
import sys
from wfdsl.testing import workflows
before = set(sys.modules)
import wfdsl
workflow = wfdsl.parse("model_id = [0]\\nsubtasks = ['x']\\naccess_list = [[]]")
wfdsl.to_dag(workflow)
print(*sorted(name for name in set(sys.modules) - before if name.partition(".")[0] in ("lark", "networkx", "wfdsl")))
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == ""
