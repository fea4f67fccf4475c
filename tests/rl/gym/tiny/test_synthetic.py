"""Synthetic workflows with their reasoning prefixes, and the annotation accuracy of samples."""

from __future__ import annotations

import json
import random
import statistics
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rl.training.toy import a_prompt
from wfdsl.api import analyze, parse
from wfdsl.conductor.effort import EFFORTS
from wfdsl.conductor.listing import WorkerListing
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.cli.train import main
from wfdsl_rl.gym import make
from wfdsl_rl.gym.tiny.config import TinyConfig
from wfdsl_rl.gym.tiny.reasoning_prefix import (
    Asked,
    Format,
    annotation,
    annotation_in,
    by_advertisement,
    correct_annotation,
)
from wfdsl_rl.gym.tiny.sft_rows import SftRows
from wfdsl_rl.gym.tiny.synthetic import CHECKS, PART_SHAPES, SHAPES, SyntheticWorkflows, short_lists, with_lists
from wfdsl_rl.gym.world import wording
from wfdsl_rl.gym.world.replies import signs_in
from wfdsl_rl.reward import Reward
from wfdsl_rl.reward_maker import make_reward
from wfdsl_rl.rows import offer_of
from wfdsl_rl.training.config import SftConfig, TrainConfig
from wfdsl_rl.training.data import Draw, make_rows
from wfdsl_rl.training.plan import read_plan
from wfdsl_rl.training.rewarding import stage_reward
from wfdsl_rl.training.setup import Extension, Setup

GYM = Pool.load("gym/paper7")
RIGHT = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
END = 1
"""The token that ends a completion."""
KEEP = "model_id = []\nsubtasks = []\naccess_list = []"


KINDS = st.sampled_from(["math", "choice", "text", "code"])


@given(st.integers(), st.sets(st.integers(0, 6), min_size=1), KINDS)
def test_what_the_prior_writes_is_strictly_valid(seed: int, indices: set[int], kind: str) -> None:
    offer = WorkerListing.of(GYM.subset(sorted(indices)))

    written = SyntheticWorkflows().completion(random.Random(seed), offer, Asked(kind))

    checked = analyze(written, pool=7, max_steps=5)
    assert checked.ok
    assert checked.diagnostics == ()
    assert checked.workflow is not None
    assert {step.worker for step in checked.workflow} <= indices
    sketch, lists = written.split("\n", 1)
    assert lists == short_lists(checked.workflow)
    assert sketch.split()[:-1] == [kind, *map(str, by_advertisement(offer, kind)[:4])]
    assert len(sketch.split()[-1]) == len(checked.workflow)


@given(st.integers(), st.sets(st.integers(0, 6), min_size=1), KINDS, st.booleans())
def test_a_sketch_with_roles_says_who_gets_which_role(seed: int, indices: set[int], kind: str, parts: bool) -> None:
    offer = WorkerListing.of(GYM.subset(sorted(indices)))
    ranked = by_advertisement(offer, kind)[:4]

    written = SyntheticWorkflows(form="roles", parts=parts).completion(random.Random(seed), offer, Asked(kind))

    checked = analyze(written, pool=7, max_steps=5)
    assert checked.ok
    assert checked.workflow is not None
    sketch, lists = written.split("\n", 1)
    assert lists == short_lists(checked.workflow)
    listing = [f"{letter}{index}" for letter, index in zip("abcd", ranked, strict=False)]
    assert sketch.split()[: len(ranked) + 1] == [kind, *listing]
    shape, *roles = sketch.split()[len(ranked) + 1 :]
    assert [int(each[1 + parts :]) for each in roles] == [step.worker for step in checked.workflow]
    assert {each[parts:] for each in roles} <= set(listing)
    assert len(roles) == len(shape)
    if parts:
        assert "".join(each[0] for each in roles) == shape
        assert with_lists(f"{sketch}\n") == written
        assert with_lists(written.partition(listing[-1])[2].partition("\n")[0]).endswith(lists)  # the rest was forced


@given(st.integers(0, 10_000), KINDS)
def test_workers_stand_by_what_is_advertised_of_them(row: int, kind: str) -> None:
    offer = Draw(pick=(2, 3, 4, 5, 6, 7), shuffle=True).offer(GYM, row)

    ranked = by_advertisement(offer, kind)

    assert sorted(ranked) == list(offer.indices)
    advertised = dict(zip(offer.indices, offer.descriptions, strict=True))
    numbers = [int(advertised[index].split(f"{kind} ")[1].split()[0]) for index in ranked]
    assert numbers == sorted(numbers, reverse=True)


@given(
    st.integers(),
    st.sets(st.integers(0, 6), min_size=1),
    KINDS,
    st.sampled_from(get_args(Format)),
    st.booleans(),
    st.sampled_from([(), ("algebra", "low")]),
)
def test_what_the_prior_says_of_a_prompt_is_so(
    seed: int, indices: set[int], kind: str, form: Format, again: bool, said: tuple[str, ...]
) -> None:
    offer, prior, rng = (
        WorkerListing.of(GYM.subset(sorted(indices))),
        SyntheticWorkflows(form=form),
        random.Random(seed),
    )
    signs, asked = ("hedged", "passes") if again else (), Asked(kind, *said)

    written = prior.revision(rng, offer, asked, signs) if again else prior.completion(rng, offer, asked)

    if form != "none":
        assert annotation_in(written) == annotation(form, asked, by_advertisement(offer, kind), signs)


@pytest.mark.parametrize("form", get_args(Format))
def test_the_prior_writes_for_more_workers_than_there_are_letters(form: Format) -> None:
    offer = WorkerListing(tuple(range(40)), (), ("",) * 40, {})

    written = SyntheticWorkflows(form=form).completion(random.Random(0), offer, Asked("math"))

    assert analyze(written, pool=40, max_steps=5).ok


def test_workers_that_say_nothing_stand_in_the_order_of_the_offer() -> None:
    assert by_advertisement(WorkerListing((0, 1, 3), (), ("", "strong at code 9 times", "code 3"), {}), "code") == [
        1,
        3,
        0,
    ]
    assert by_advertisement(WorkerListing((2, 5), (), ("", ""), {}), "code") == [2, 5]


def asked_by(prior: SyntheticWorkflows, kind: str) -> Counter[int | str]:
    rng = random.Random(0)
    offer = WorkerListing((0, 1, 2, 3), (), ("", "", "", ""), {})
    written = (prior.completion(rng, offer, Asked(kind)) for _ in range(3000))
    return Counter(step.worker for text in written for step in parse(text, pool=4))


def test_the_prior_without_habits_asks_every_worker_equally_often() -> None:
    asked = asked_by(SyntheticWorkflows(bias=0.0), "math")

    assert max(asked.values()) / min(asked.values()) < 1.1


def test_habits_differ_by_kind_and_come_from_the_seed_alone() -> None:
    math, code, other = (
        asked_by(SyntheticWorkflows(seed=seed), kind) for seed, kind in ((0, "math"), (0, "code"), (1, "math"))
    )

    assert math.most_common() != code.most_common()
    assert math.most_common() != other.most_common()
    assert math == asked_by(SyntheticWorkflows(seed=0), "math")


PARTS = {
    "DDE Da0 Db1 Ec2": ([], [0], [1]),
    "AAE Aa0 Ab1 Ec2": ([], [], [0, 1]),
    "SRR Sa0 Rb1 Ra0": ([], [0], [1]),
    "AAEV Aa0 Ab1 Ec2 na0": ([], [], [0, 1], [2]),
    "SSSC Sa0 Sa0 Sb1 Ca0": ([], [], [], "all"),
}


@pytest.mark.parametrize("prefix", PARTS)
def test_steps_see_only_what_they_need(prefix: str) -> None:
    workflow = parse(with_lists(f"math {prefix}").partition("\n")[2], pool=7)

    assert tuple(workflow.to_lists()["access_list"]) == PARTS[prefix]
    if prefix[0] in "DA":
        assert [step.subtask for step in workflow][:2] == ["Do part 1.", "Do part 2."]
    if prefix.startswith("AAEV"):
        assert workflow[3].subtask == CHECKS["n"]


@pytest.mark.parametrize("family", ["decoy", "chain"])
def test_what_verifiers_look_at_is_drawn_and_written_in_both_forms(family: str) -> None:
    prior = SyntheticWorkflows(form="roles", parts=True, checks=True)
    offer, rng = WorkerListing.of(GYM), random.Random(0)

    written = [prior.completion(rng, offer, Asked("math", family, "high")) for _ in range(200)]

    assert all(with_lists(text.partition("\n")[0]) == text for text in written)
    assert {each for text in written for each in CHECKS.values() if each in text} == set(CHECKS.values())


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "math",
        "math PFV",
        "math PFV Pa0 Fa1",
        "math PFV Pa0 Fa1 Sa0",
        "math SV Sa0 Va1 Va2",
        "math SV Sa0 b1",
        "SV S0 V1",
    ],
)
def test_a_prefix_that_names_no_workflow_stands_for_no_lists(prefix: str) -> None:
    assert with_lists(f"{prefix}\n") == prefix


def test_a_prefix_that_keeps_the_answer_stands_for_empty_lists() -> None:
    assert with_lists("math a0 passes keep\n") == f"math a0 passes keep\n{KEEP}"


def test_lower_efforts_show_shorter_workflows() -> None:
    offer, prior = WorkerListing.of(GYM), SyntheticWorkflows(lengths={1: 1.0, 3: 1.0, 5: 1.0}, thrift=0.3)

    def steps(effort: str) -> float:
        rng = random.Random(0)
        written = (prior.completion(rng, offer, Asked("math", "algebra", effort)) for _ in range(300))
        return statistics.fmean(len(parse(text, pool=7)) for text in written)

    means = [steps(effort) for effort in EFFORTS]

    assert means == sorted(means)
    assert means[-1] - means[0] > 1


def test_shapes_are_as_long_as_they_say() -> None:
    for known in (SHAPES, PART_SHAPES):
        assert all(len(shape) == length for length, shapes in known.items() for shape in shapes)
        assert all(shape[-1] != "P" for shapes in known.values() for shape in shapes)


MADE = {
    "gym-tiny": ({"PF", "SV", "PFV", "SVV", "SSC", "PFVV", "PFFC", "SSSC", "SVVV"}, "bcebbc017ff0a479"),
    "gym-axes": (
        {"S", "PF", "SV", "SR", "DE", "AE", "PFV", "SVV", "SRR", "SSC", "DDE", "AAE", "DEV", "PFVV", "SSSC", "SVVV"}
        | {"SRRR", "DDEV", "AAEV", "AAAE", "PFVVV", "SSSSC", "SVVVV", "SRRRR", "DDEVV", "AAEVV", "AAAEV", "SSSCV"},
        "ed92b541674c95c7",
    ),
}
"""The shapes that the Conductors that ship were shown in SFT, and SHA-256 of the first 128 rows, 16 digits of it."""


@pytest.mark.parametrize("preset", MADE)
def test_the_rows_of_a_preset_stay_what_they_are(preset: str, tmp_path: Path) -> None:
    plan = read_plan(preset, ["train.task_count=200"])
    asked: Any = {"train": plan.train, "extension": plan.extension, "prompt": plan.prompt, "pool": plan.pool}
    setup = Setup(**asked, max_steps=plan.max_steps, tasks=plan.tasks(), eval_tasks=(), out=tmp_path)
    made = SftRows(setup, asked["extension"], stage_reward(setup, "new", grades=False))

    rows = made.before_rewards(128)

    shapes, digest = MADE[preset]
    assert {*made.synthetic.every_shape} == shapes
    assert sha256(json.dumps(rows).encode()).hexdigest()[:16] == digest


def test_lists_are_not_written_from_a_prefix_without_the_letters_of_roles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gym-axes", "--dry-run", "--set", "train.tiny.parts=false"]) == 2

    assert 'set reasoning_prefix to "roles", and parts to true' in capsys.readouterr().err


def rewarder(tasks: tuple[Task, ...], **more: Any) -> Reward:
    return replace(make_reward(GYM, tasks, end_of_text=END), **more)


def tiny_extension(tasks: tuple[Task, ...], form: Format) -> Extension:
    pytest.importorskip("trl", reason="needs trl, in the extra rl")
    train = TrainConfig(model="new", tasks="gym", sft=SftConfig(steps=1))
    tiny = TinyConfig(reasoning_prefix=form)
    return tiny.build(
        Setup(train=train, prompt=a_prompt(), max_steps=5, pool=GYM, tasks=tasks, eval_tasks=(), out=Path())
    )


async def test_annotations_that_are_correct_are_counted() -> None:
    asked = tuple(make("gym/paper7", 8, 5, split="train"))
    judging = rewarder(asked, figures=tiny_extension(asked, "sketch").on_samples)
    rows = make_rows(asked, GYM, a_prompt(), count=len(asked), max_steps=5, draw=Draw())
    true = [f"{correct_annotation('sketch', Asked.of(row), offer_of(row, GYM), None)} S\n{RIGHT}" for row in rows]
    logged: dict[str, float] = {}

    await judging.trl(
        [*true[:4], *[RIGHT] * 4],
        completion_ids=[[END]] * 8,
        trainer_state=type("State", (), {"global_step": 0}),
        log_metric=logged.__setitem__,
        **{key: [row[key] for row in rows] for key in rows[0] if key != "prompt"},
    )

    assert logged["annotation_accuracy"] == 0.5


async def test_a_second_round_has_to_read_the_answer_before() -> None:
    asked = tuple(make("gym/paper7", 4, 5, split="train")[:1])
    row = make_rows(asked, GYM, a_prompt(), count=1, max_steps=5, draw=Draw())[0]
    row["previous"] = ("Solve it.", f"{wording.HEDGES[0]}\nAnswer: 1")
    extension = tiny_extension(asked, "sketch")
    signs = signs_in(row["previous"][1])
    ranked = by_advertisement(offer_of(row, GYM), asked[0].kind)

    texts = [f"{annotation('sketch', Asked.of(row), ranked, said)} keep\n{KEEP}" for said in (signs, ("cut",))]
    found = await rewarder(asked).batch([row] * 2, texts, 0)

    assert signs
    assert [extension.on_samples([one]) for one in found] == [
        {"annotation_accuracy": 1.0},
        {"annotation_accuracy": 0.0},
    ]


def test_shapes_for_exploring_differ_and_come_as_often_as_their_lengths_weigh() -> None:
    synthetic = SyntheticWorkflows(lengths={1: 2.0, 3: 1.0}, parts=True)
    drawn = [synthetic.shapes(f"base:{key}", 4) for key in range(200)]

    assert all(len({*shapes}) == 4 for shapes in drawn)
    assert {shape for shapes in drawn for shape in shapes} == {*PART_SHAPES[1], *PART_SHAPES[3]}
    first = [shapes[0] for shapes in drawn]
    assert 110 < first.count("S") < 160
    assert drawn[0] == synthetic.shapes("base:0", 4) != drawn[1]
