"""The few-shot examples that a Conductor is shown: each can be run on the workers and within the steps on offer."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl import Pool, UsageError, WorkerEntry, analyze
from wfdsl.conductor.examples import Example, example_from, load_examples, shipped_sets
from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.prompt import Prompt, shipped_prompts
from wfdsl.graph import graph_of
from wfdsl.testing import workflows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl import Workflow

GOLDEN = Path(__file__).parent / "golden" / "examples.txt"
SIZES, STEPS = range(1, 8), range(1, 6)
EVERY_SHAPE = ["single", "chain", "tree", "independent-then-aggregate"]


def offer_of(indices: Sequence[int]) -> WorkerListing:
    pool = Pool({index: WorkerEntry(name=f"w{index}", provider="function") for index in indices})
    return WorkerListing.of(pool)


def shown(name: str, indices: Sequence[int], max_steps: int) -> list[Example]:
    fitting = (example.fitting(tuple(indices), max_steps) for example in load_examples(name).examples)
    return [example for example in fitting if example is not None]


def assert_valid(example: Example, indices: Sequence[int], max_steps: int) -> None:
    checked = analyze(example.completion, pool=offer_of(indices), max_steps=max_steps, profile="strict")
    assert checked.ok, checked.diagnostics
    assert not checked.diagnostics
    assert checked.workflow == example.workflow


@pytest.mark.parametrize("max_steps", STEPS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", shipped_sets())
def test_what_is_shown_is_strictly_valid_on_what_is_offered(name: str, size: int, max_steps: int) -> None:
    examples = shown(name, range(size), max_steps)

    shapes = {1: ["single"], 2: ["single", "chain"], 3: ["single", "chain", "independent-then-aggregate"]}
    assert [graph_of(example.workflow).topology for example in examples] == shapes.get(max_steps, EVERY_SHAPE)
    for example in examples:
        assert_valid(example, range(size), max_steps)


@given(
    st.sampled_from(shipped_sets()),
    st.lists(st.integers(0, 10**6), min_size=1, max_size=9, unique=True).map(sorted),
    st.integers(1, 40),
)
def test_so_it_is_on_any_indices_and_under_any_step_limit(name: str, indices: list[int], max_steps: int) -> None:
    for example in shown(name, indices, max_steps):
        assert_valid(example, indices, max_steps)


@given(workflows(), st.lists(st.integers(0, 99), min_size=1, max_size=7, unique=True).map(sorted))
def test_only_the_workers_of_an_example_change_and_stay_as_different_as_the_offer_allows(
    workflow: Workflow, indices: list[int]
) -> None:
    from wfdsl import dumps

    example = example_from("Why?", f"Two plus [3] is five.\n{dumps(workflow)}")

    fitting = example.fitting(indices, len(workflow))

    assert fitting is not None
    assert fitting.question == example.question
    assert [(step.subtask, step.access) for step in fitting.workflow] == [
        (step.subtask, step.access) for step in workflow
    ]
    before, after = ([step.worker for step in each] for each in (workflow, fitting.workflow))
    assert set(after) <= set(indices)
    assert len(set(after)) == min(len(set(before)), len(indices))
    assert all(new == old for old, new in zip(before, after, strict=True) if old in indices)
    assert analyze(fitting.completion, max_steps=None).workflow == fitting.workflow
    assert fitting.fitting(indices, len(workflow)) == fitting


def test_an_example_that_fits_is_shown_as_it_was_written() -> None:
    examples = load_examples("out-of-distribution").examples

    assert [example.fitting(tuple(range(7)), 5) for example in examples] == list(examples)


@pytest.mark.parametrize(
    ("prose", "kept"),
    [
        ("Five models are weak, so one checks.", True),
        ("Model 2 codes better.", False),
        ("worker #5 is slow", False),
        ("Models 1-3 are equal.", False),
    ],
)
def test_prose_that_names_workers_by_number_is_left_out_where_they_change(prose: str, kept: bool) -> None:
    lists = 'model_id = [2, 2]\nsubtasks = ["a", "b"]\naccess_list = [[], [0]]'

    fitting = example_from("Why?", f"{prose}\n{lists}").fitting((1,), 5)

    assert fitting is not None
    assert fitting.prose.strip() == (prose if kept else "")
    assert [step.worker for step in fitting.workflow] == [1, 1]
    assert fitting.fitting((1,), 5) == fitting


def test_an_example_whose_subtask_names_a_worker_is_shown_to_its_own_workers_only() -> None:
    example = example_from("Why?", 'model_id = [2]\nsubtasks = ["Check what model 2 wrote."]\naccess_list = [[]]')

    assert example.fitting((1, 2), 5) == example
    assert example.fitting((1,), 5) is None


def test_an_example_of_too_many_steps_is_left_out_and_the_others_are_numbered_anew(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    one = 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]'
    two = 'model_id = [0, 1]\nsubtasks = ["a", "b"]\naccess_list = [[], "all"]'
    path.write_text(
        "\n".join(f"[[examples]]\nquestion = 'Q{at}'\ncompletion = '''{text}'''" for at, text in enumerate([two, one]))
    )
    prompt = Prompt.load("paper", examples=str(path))

    (_, user) = prompt.ask("Why?", offer_of([0]), max_steps=1)

    assert "## Example 1\nQuestion: Q1" in user["content"]
    assert "Q0" not in user["content"]


@pytest.mark.parametrize("name", shipped_prompts())
def test_without_examples_nothing_speaks_of_them(name: str) -> None:
    (_, user) = Prompt.load(name, examples="none").ask("Why?", offer_of([0]), max_steps=5)

    assert "xample" not in user["content"]
    assert "\n\n\n" not in user["content"]


def test_a_shorter_completion_that_is_not_shorter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    lists = "'''model_id = [0]\nsubtasks = [\"a\"]\naccess_list = [[]]'''"
    path.write_text(f"[[examples]]\nquestion = 'Q'\ncompletion = {lists}\nshorter = {lists}")

    with pytest.raises(UsageError, match="example 0: shorter has to have fewer steps"):
        load_examples(str(path))


def summary() -> str:
    """Every prompt of every size and step limit: the workers of its examples, and the hash of all its bytes."""
    lines = []
    for name in shipped_sets():
        for size in SIZES:
            for steps in STEPS:
                workers = [[step.worker for step in each.workflow] for each in shown(name, range(size), steps)]
                lines.append(f"{name}, {size} workers, {steps} steps: {' '.join(map(str, workers))}")
                lines += [f"  {prompt} {digest(prompt, name, size, steps)}" for prompt in shipped_prompts()]
    return "\n".join(lines) + "\n"


def digest(prompt: str, examples: str, size: int, max_steps: int) -> str:
    messages = Prompt.load(prompt, examples=examples).ask(
        "What is 17 * 23?", offer_of(range(size)), max_steps=max_steps
    )
    text = "\0".join(f"{message['role']}\0{message['content']}" for message in messages)
    return hashlib.sha256(text.encode()).hexdigest()


def test_every_prompt_of_every_pool_size_and_step_limit_is_this_byte_for_byte() -> None:
    assert summary() == GOLDEN.read_text()
