"""What the warm-up shows: first rounds, and second ones if the stage of recursion follows."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch", reason="needs torch and trl, in the extra rl")
pytest.importorskip("trl", reason="needs torch and trl, in the extra rl")

from tests.rl.training.toy import TINY, TRAIN, a_setup
from wfdsl.api import analyze
from wfdsl.conductor.listing import WorkerListing
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym import make
from wfdsl_rl.gym.tiny.config import RecursionSftConfig, ReplayConfig, TinyConfig
from wfdsl_rl.gym.tiny.reasoning_prefix import KEEP, Asked, named
from wfdsl_rl.gym.tiny.sft_rows import SftRows
from wfdsl_rl.gym.tiny.small_vocabulary import dataset_of, use_small_vocabulary_loss
from wfdsl_rl.gym.tiny.synthetic import SyntheticWorkflows
from wfdsl_rl.gym.world.replies import signs_in
from wfdsl_rl.rows import offer_of
from wfdsl_rl.training.checkpoints import load_model
from wfdsl_rl.training.config import PoolsConfig, RecursionConfig, SftConfig
from wfdsl_rl.training.data import Draw, draw_of, make_rows
from wfdsl_rl.training.grpo import sft_trainer
from wfdsl_rl.training.rewarding import stage_reward

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wfdsl_rl.training.setup import Setup

GYM = Pool.load("gym/paper7")
SIGNS = ("passes", "fails", "hedged", "slipped", "cut")
EMPTY = "model_id = []\nsubtasks = []\naccess_list = []"


TINY_GYM = TINY.model_copy(update={"second_rounds": 0.25, "lengths": {"2": 1.0, "3": 1.0}})


def a_gym_setup(out: Path, extension: TinyConfig = TINY_GYM, **train: Any) -> Setup:
    tasks = tuple(make("gym/paper7", 60, 5, split="train"))
    return replace(a_setup(out), train=TRAIN.model_copy(update=train), extension=extension, pool=GYM, tasks=tasks)


def sft_rows(setup: Setup) -> SftRows:
    assert isinstance(setup.extension, TinyConfig)
    return SftRows(setup, setup.extension, stage_reward(setup, "test", grades=False))


def rows_for(setup: Setup, count: int) -> list[dict[str, Any]]:
    return sft_rows(setup).before_rewards(count)


def new_model(setup: Setup) -> str:
    """The folder of a new model."""
    return setup.extension.build(setup).before("sft", "new")


def test_a_quarter_are_second_rounds_which_show_the_first_one_and_its_response(tmp_path: Path) -> None:
    setup = a_gym_setup(tmp_path)

    rows = rows_for(setup, 8 * setup.train.sft.batch_size)

    seconds = [row for row in rows if len(row["prompt"]) == 3]
    assert len(seconds) == 2 * setup.train.sft.batch_size
    for row in seconds:
        asked, said, response = row["prompt"]
        assert [message["role"] for message in row["prompt"]] == ["user", "assistant", "user"]
        assert analyze(said["content"], pool=7).ok
        sketch = row["completion"][0]["content"].split("\n")[0].split()
        assert [word for word in sketch if word in SIGNS] == list(signs_in(response["content"]))
        assert any(asked["content"].startswith(task.question) for task in setup.tasks)


def test_second_rounds_fill_batches_of_their_own(tmp_path: Path) -> None:
    setup = a_gym_setup(tmp_path)
    batch = setup.train.sft.batch_size

    lengths = [len(row["prompt"]) for row in rows_for(setup, 8 * batch)]

    assert [set(lengths[at : at + batch]) for at in range(0, len(lengths), batch)] == 2 * [{1}, {1}, {1}, {3}]


def test_second_rounds_are_strictly_valid_and_about_half_of_them_keep(tmp_path: Path) -> None:
    rows = rows_for(a_gym_setup(tmp_path), 800)

    seconds = [row["completion"][0]["content"] for row in rows if len(row["prompt"]) == 3]
    checked = [analyze(text, pool=7, max_steps=5, recursion=True, depth_left=0) for text in seconds]
    assert all(each.ok and not each.diagnostics for each in checked)
    kept = [each.workflow is None for each in checked]
    assert [text.split("\n")[0].endswith(KEEP) for text in seconds] == kept
    assert 0.25 < sum(kept) / len(kept) < 0.75


def test_a_warmup_for_recursion_shows_the_models_own_first_rounds_and_second_rounds_after_them(tmp_path: Path) -> None:
    own = 'I plan.\nmodel_id = [0, 1]\nsubtasks = ["Plan it.", "Use the plan."]\naccess_list = [[], [0]]'
    sft = RecursionSftConfig(steps=4, batch_size=8)
    setup = a_gym_setup(tmp_path, TINY_GYM.model_copy(update={"recursion_sft": sft}))

    def write(conversations: Sequence[Any], _: Sequence[str]) -> list[str]:
        return [own if at % 4 else "no lists" for at in range(len(conversations))]

    rows = sft_rows(setup).before_recursion(write)

    firsts = [row for row in rows if len(row["prompt"]) == 1]
    seconds = [row for row in rows if len(row["prompt"]) == 3]
    assert [row["completion"][0]["content"] for row in firsts] == [own] * 12  # of 16, a quarter is no workflow
    assert [row["prompt"][1]["content"] for row in seconds] == [own] * 12
    assert all("6: math" in row["prompt"][0]["content"] for row in rows)  # all workers: no stage of pools follows
    said = [row["completion"][0]["content"] for row in seconds]
    assert all(analyze(text, pool=7, recursion=True, depth_left=0).ok for text in said)
    assert own not in said


def test_a_refresh_shows_what_the_model_writes_behind_a_true_thought(tmp_path: Path) -> None:
    lists = 'model_id = [0, 1]\nsubtasks = ["Plan it.", "Use the plan."]\naccess_list = [[], [0]]'
    replay = ReplayConfig(recursion=SftConfig(steps=6, batch_size=4))
    setup = a_gym_setup(
        tmp_path,
        TINY_GYM.model_copy(update={"replay": replay}),
        recursion=TRAIN.recursion.model_copy(update={"forced": 0.5}),
    )
    begun: list[str] = []

    def write(conversations: Sequence[Any], beginnings: Sequence[str]) -> list[str]:
        begun.extend(beginnings)
        return [f"{beginning} PF\n{lists if at % 4 else ''}" for at, beginning in enumerate(beginnings)]

    rows = sft_rows(setup).replay(write, "recursion")

    by_rounds = Counter(len(row["prompt"]) for row in rows)
    assert by_rounds == {1: 9, 3: 6}  # 24; half are second rounds, of which a quarter had a first one without an answer
    kinds = {task.question: task.kind for task in setup.tasks}
    for row in rows:
        said = row["completion"][0]["content"].split()
        kind = next(kind for question, kind in kinds.items() if question in row["prompt"][0]["content"])
        assert said[0] == kind
        signs = signs_in(row["prompt"][-1]["content"]) if len(row["prompt"]) == 3 else ()
        assert said[5 : said.index("PF")] == list(signs)
    assert len(begun) == 24 + 9


def test_every_second_question_of_a_refresh_has_noise_in_its_words_and_the_completion_of_the_clean_one(
    tmp_path: Path,
) -> None:
    replay = ReplayConfig(base=SftConfig(steps=40, batch_size=4), word_noise=0.3)
    setup = a_gym_setup(tmp_path, TINY_GYM.model_copy(update={"replay": replay}))
    questions = {task.question for task in setup.tasks}
    known = {word for question in questions for word in question.split(" ")}
    asked: list[str] = []

    def write(conversations: Sequence[Any], beginnings: Sequence[str]) -> list[str]:
        asked.extend(conversation[0]["content"] for conversation in conversations)
        lists = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
        return [f"{beginning} {at}\n{lists}" for at, beginning in enumerate(beginnings)]

    rows = sft_rows(setup).replay(write, "base")

    assert rows == sft_rows(setup).replay(write, "base")
    assert [row["completion"][0]["content"].split("\n")[0].split()[-1] for row in rows] == [*map(str, range(160))]
    shown = [row["prompt"][0]["content"] for row in rows]
    assert all(any(question in prompt for question in questions) for prompt in asked)
    assert shown[::2] == asked[:160:2]
    changed = [(clean, noisy) for clean, noisy in zip(asked[1:160:2], shown[1::2], strict=True) if clean != noisy]
    assert len(changed) > 70
    lost = []
    for clean, noisy in changed:
        question = next(each for each in questions if clean.startswith(each))
        rest = clean.removeprefix(question)
        assert noisy.endswith(rest)  # the workers and the request stay
        words, left = question.split(" "), noisy.removesuffix(rest).split(" ")
        assert set(left) <= known
        lost.append(1 - len(set(words) & set(left)) / len(set(words)))
    assert 0.2 < sum(lost) / len(lost) < 0.4


def test_revisions_of_the_model_itself_ask_others_than_the_one_who_answered(tmp_path: Path) -> None:
    sft = RecursionSftConfig(steps=40, batch_size=8, alternative_revisions=1.0)
    tiny = {"recursion_sft": sft, "reasoning_prefix": "roles", "lengths": {"2": 1.0}}
    setup = a_gym_setup(tmp_path, TINY_GYM.model_copy(update=tiny))

    def write(_: Sequence[Any], beginnings: Sequence[str]) -> list[str]:
        """The best advertised plans, and the next one follows: of all, and of others."""
        texts = []
        for beginning in beginnings:
            _, first, second, *_ = beginning.split()
            workers = f"[{first[1:]}, {second[1:]}]"
            lists = f'model_id = {workers}\nsubtasks = ["Plan it.", "Use the plan."]\naccess_list = [[], [0]]'
            texts.append(f"{beginning} PF {first} {second}\n{lists}")
        return texts

    rows = sft_rows(setup).before_recursion(write)

    seconds = [row for row in rows if len(row["prompt"]) == 3]
    said = [row["completion"][0]["content"] for row in seconds]
    revised = [(row, text) for row, text in zip(seconds, said, strict=True) if f" {KEEP}\n" not in text]
    assert 40 < len(revised) < 120
    for row, text in revised:
        _, *asked = text.split()[:5]
        signs = signs_in(row["prompt"][-1]["content"])
        assert text.split("\n")[0].split()[5:] == [*signs, "PF", asked[0], asked[2]]
        first, second = (analyze(each, pool=7, recursion=True) for each in (row["prompt"][1]["content"], text))
        assert first.workflow is not None
        assert second.workflow is not None
        assert first.workflow[1].worker not in {step.worker for step in second.workflow}


def test_who_answered_first_is_left_out_unless_too_few_are_left(tmp_path: Path) -> None:
    setup = a_gym_setup(tmp_path)
    (row,) = make_rows(setup.tasks[:1], GYM, setup.prompt, count=1, max_steps=5, draw=Draw(pick=(7,)))
    (pair,) = make_rows(setup.tasks[:1], GYM, setup.prompt, count=1, max_steps=5, draw=Draw(pick=(2,)))

    def left(row: dict[str, Any], shape: str, *asked: int) -> set[int]:
        """Places of those who are left."""
        ranked = named(offer_of(row, GYM), row["kind"])
        lists = f"model_id = {[ranked[place] for place in asked]}\nsubtasks = {['S'] * len(asked)}"
        said = {"role": "assistant", "content": f"{shape}\n{lists}\naccess_list = {[[] for _ in asked]}"}
        offer = sft_rows(setup).alternatives(
            {**row, "prompt": [*row["prompt"], said, {"role": "user", "content": "4"}]}
        )
        assert list(offer.indices) == list(range(len(offer.pool_indices)))
        places = {offer_of(row, GYM).pool_indices[index]: place for place, index in enumerate(ranked)}
        return {places[worker] for worker in offer.pool_indices.values()}

    assert left(row, "S", 0) == {1, 2, 3}
    assert left(row, "SVV", 0, 2, 2) == {1, 2, 3}
    assert left(row, "PFVV", 0, 1, 3, 3) == {0, 2, 3}
    assert left(row, "", 2, 1) == {0, 1, 3}
    assert left(row, "PP", 0, 1) == {0, 1, 2, 3}
    assert left(pair, "S", 0) == {0, 1}


def test_without_a_stage_of_recursion_nothing_is_run_and_no_second_round_is_shown(tmp_path: Path) -> None:
    setup = a_gym_setup(tmp_path, recursion=RecursionConfig(iterations=0))

    rows = SftRows(setup, TINY_GYM, None).before_rewards(40)  # type: ignore[arg-type]  # no rewarder is asked

    assert all(len(row["prompt"]) == 1 for row in rows)


def test_the_rows_follow_from_the_seed(tmp_path: Path) -> None:
    setup = a_gym_setup(tmp_path)

    assert rows_for(setup, 40) == rows_for(setup, 40)


def test_keeping_has_habits_that_differ_by_the_signs() -> None:
    offer = WorkerListing.of(GYM)

    def keeps(*signs: str) -> float:
        rng = random.Random(0)
        prior = SyntheticWorkflows(bias=2.0, seed=1)
        return sum(prior.revision(rng, offer, Asked("math"), signs).endswith(EMPTY) for _ in range(500)) / 500

    shares = [keeps(), keeps("fails"), keeps("passes"), keeps("hedged", "passes")]
    assert max(shares) - min(shares) > 0.2


@pytest.mark.parametrize("sensible", [0.3, 0.9])
def test_sensible_second_rounds_revise_what_admits_a_doubt(sensible: float) -> None:
    offer, rng = WorkerListing.of(GYM), random.Random(3)

    def kept(*signs: str) -> float:
        said = [SyntheticWorkflows(seed=4).revision(rng, offer, Asked("math"), signs, sensible) for _ in range(400)]
        return sum(text.endswith(EMPTY) for text in said) / len(said)

    for signs in ((), ("passes",), ("hedged", "passes")):
        assert kept(*signs) == pytest.approx(sensible, abs=0.08)
    for signs in (("fails",), ("hedged", "slipped"), ("cut",)):
        assert kept(*signs) == pytest.approx(1 - sensible, abs=0.08)


def test_the_warm_up_shows_no_subset_that_is_held_out(tmp_path: Path) -> None:
    setup = a_gym_setup(tmp_path, pools=PoolsConfig(iterations=5), recursion=RecursionConfig(iterations=0))

    drawn = draw_of(setup, "pools")

    assert drawn == Draw(pick=(2, 3, 4, 5, 6, 7), shuffle=True, held_out=0.25, seed=0)
    assert draw_of(setup, "pools", unseen=True).unseen
    assert 7 not in draw_of(setup, "pools", unseen=True).pick
    assert draw_of(setup, "base", unseen=True) == Draw(seed=0)


def test_a_small_vocabulary_gets_the_loss_that_trl_gives(tmp_path: Path) -> None:
    setup = a_gym_setup(tmp_path)
    rows = rows_for(setup, 3 * setup.train.sft.batch_size)
    sft = setup.train.sft.model_copy(update={"steps": 3})
    folder = new_model(setup)

    def losses(*, small: bool) -> list[float]:
        tokenizer, network = load_model(folder)
        tokens = dataset_of(tokenizer, rows)
        made = sft_trainer(network, tokenizer, tokens, tmp_path / "steps", sft=sft, train=setup.train)
        if small:
            use_small_vocabulary_loss(made)
        made.args.logging_steps = 1
        made.train()
        return [entry["loss"] for entry in made.state.log_history if "loss" in entry]

    small, fused = losses(small=True), losses(small=False)

    assert len(small) == 3
    assert small == pytest.approx(fused, abs=1e-4)
