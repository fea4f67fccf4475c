"""The prompt builder: what a Conductor is sent, byte for byte, and template sets of one's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wfdsl import Pool, UsageError, WorkerEntry
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.examples import load_examples
from wfdsl.conductor.listing import WorkerListing, offered_workers
from wfdsl.conductor.prompt import SHIPPED, Prompt, shipped_prompts

GOLDEN = Path(__file__).parent / "golden"
QUESTION = "What is 17 * 23?"

OWN = """
name = "own"
version = 7
examples = "none"
system = "You plan."
ask = "{examples}Q: {question}\\nW: {workers}\\nAt most {max_steps} of {these}."
example = "E{number}: {question} -> {lists}\\n"
worker = "worker {ordinal} ({description})"
revise = "Got, up to {mark}: {response}{mark}; {rounds_left} left, {max_steps} steps."
reask = "Wrong: {problems}"
"""


def pool() -> Pool:
    descriptions = ["Large model, short thinking", "", "Writes  code\nwell"]
    return Pool(
        [
            WorkerEntry(name=f"secret-brand-{at}", provider="openai", model="brand", description=text, tags=("brand",))
            for at, text in enumerate(descriptions)
        ]
    )


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return path


@pytest.mark.parametrize("name", shipped_prompts())
def test_a_shipped_prompt_is_this_byte_for_byte(name: str) -> None:
    prompt = Prompt.load(name)
    messages = [
        *prompt.ask(QUESTION, WorkerListing.of(pool()), max_steps=5),
        prompt.revise("It is 391.", max_steps=5, rounds_left=1),
        prompt.reask("- line 1: wrong"),
    ]

    text = "".join(f"<<{message['role']}>>\n{message['content']}\n" for message in messages)

    assert text.encode() == (GOLDEN / f"{name}.txt").read_bytes()


def test_a_set_of_one_s_own_is_filled_in_and_nothing_else_is_touched(own: Path) -> None:
    prompt = Prompt.load(str(own))

    messages = prompt.ask("Is {workers} a {name}?", WorkerListing.of(pool()), max_steps=4)

    assert messages == (
        {"role": "system", "content": "You plan."},
        {
            "role": "user",
            "content": "Q: Is {workers} a {name}?\nW: worker 0 (Large model, short thinking)\nworker 1\n"
            "worker 2 (Writes code well)\nAt most 4 of {these}.",
        },
    )
    revision = prompt.revise("{problems}", max_steps=2, rounds_left=3)["content"]
    assert re.fullmatch(r"Got, up to (\w{8}): \{problems\}\1; 3 left, 2 steps\.", revision)
    assert prompt.reask("{response}")["content"] == "Wrong: {response}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{question}", "it", "ask has no {question}"),
        ("{response}", "it", "revise has no {response}"),
        ("up to {mark}: {response}{mark}", "{response}", "revise: a response could imitate the text after it"),
        ("{problems}", "it", "reask has no {problems}"),
        ("version = 7", 'version = "7"', "needs version, as a number"),
        ('system = "You plan."', "", "needs system, as a text"),
        ('name = "own"', 'name = "own"\nsistem = "x"', "'sistem' is not a field"),
        ('name = "own"', "name = ", "not a TOML file"),
        ('examples = "none"', 'examples = "nowhere"', "no examples 'nowhere'"),
    ],
)
def test_a_set_that_lacks_something_is_refused(own: Path, old: str, new: str, message: str) -> None:
    own.write_text(OWN.replace(old, new))

    with pytest.raises(UsageError, match=re.escape(message)):
        Prompt.load(str(own))


def test_the_hash_changes_with_any_text_and_any_example(own: Path) -> None:
    hashes = {Prompt.load(str(own)).hash, Prompt.load(str(own), examples="mixed").hash}
    own.write_text(OWN.replace("You plan.", "You plan!"))
    hashes.add(Prompt.load(str(own)).hash)

    assert len(hashes) == 3
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes)
    assert Prompt.load("paper").hash == Prompt.load(str(SHIPPED / "paper.toml")).hash


def test_an_example_that_is_not_strictly_valid_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[[examples]]\nquestion = "Q"\ncompletion = "model_id = [0]"\n')

    with pytest.raises(ValueError, match="example 0"):
        load_examples(str(path))


def test_a_pick_depends_on_seed_and_question_only() -> None:
    picks = [
        offered_workers(ConductorConfig(pick=2, seed=seed), pool(), question).indices
        for seed in range(4)
        for question in ("a", "b")
        for _ in range(2)
    ]

    assert picks[::2] == picks[1::2]
    assert len(set(picks)) > 1
    assert all(len(pick) == 2 for pick in picks)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ConductorConfig(without=("nobody",)), "no worker and no tag 'nobody'"),
        (ConductorConfig(without=("brand",)), "every worker of the pool"),
        (ConductorConfig(pick=4), "4 workers cannot be picked"),
    ],
)
def test_a_choice_of_workers_that_cannot_be_kept_is_refused(config: ConductorConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        offered_workers(config, pool(), QUESTION)
