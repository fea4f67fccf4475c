"""Real trainings, of a model so small that each takes seconds."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import statistics
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402
from tokenizers.processors import TemplateProcessing  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402
from trl import GRPOTrainer  # noqa: E402

from tests.rl.training.toy import TINY, TRAIN, copy_until, curve_of, from_warmup, metrics, same, samples, train_stage  # noqa: E402
from wfdsl.errors import UsageError  # noqa: E402
from wfdsl.interpreter.journal_file import is_alive  # noqa: E402
from wfdsl_rl.gym.tiny.config import RecursionSftConfig, ReplayConfig  # noqa: E402
from wfdsl_rl.gym.tiny.extension import scale_logits  # noqa: E402
from wfdsl_rl.gym.tiny.forced_first_rounds import TinyRecursionTrainer, first_with_answer  # noqa: E402
from wfdsl_rl.gym.tiny.generation import force_prefix  # noqa: E402
from wfdsl_rl.gym.tiny.random_model import make_tokenizer  # noqa: E402
from wfdsl_rl.gym.tiny.recursion import class_balanced  # noqa: E402
from wfdsl_rl.gym.world import wording  # noqa: E402
from wfdsl_rl.gym.world.states import PASSES  # noqa: E402
from wfdsl_rl.training.checkpoints import newest_complete, problem_of  # noqa: E402
from wfdsl_rl.training.config import LOSSES, SftConfig  # noqa: E402
from wfdsl_rl.training.data import completion_text  # noqa: E402
from wfdsl_rl.training.pipeline import run_pipeline  # noqa: E402
from wfdsl_rl.training.setup import RUNNING, ExtensionConfig  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wfdsl_rl.training.config import StageName
    from wfdsl_rl.training.setup import Setup

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*_checkpointing.*deprecated:FutureWarning"),  # trl's use of transformers
]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_others_see_that_a_process_trains_until_it_ends(trained: Setup) -> None:
    seen: list[str] = []

    def look(message: str) -> None:
        if "already complete" in message:
            seen.extend(path.name for path in (trained.out / RUNNING).iterdir() if is_alive(path.parent, path.name))

    run_pipeline(replace(trained, say=look), ("base",), resume=True)

    assert len(seen) == 1
    assert list((trained.out / RUNNING).iterdir()) == []


def test_every_completion_is_kept_with_what_came_of_it(trained: Setup) -> None:
    kept = samples(trained.folder("base") / "samples")

    steps = [name for name in kept if name.startswith("step")]
    assert len(steps) == TRAIN.base.iterations
    assert all(len(kept[name]) == TRAIN.base.batch_size for name in steps)
    assert {each["outcome"] for name in steps for each in kept[name]} <= {"invalid", "wrong", "right"}
    assert all(len(kept[name]) == len(trained.eval_tasks) for name in kept if name.startswith("eval"))


def test_a_small_model_learns_from_rewards_whom_to_ask(trained: Setup, tmp_path: Path) -> None:
    """Each of three workers knows one kind of question: asking anybody is right in 38 % of the cases."""
    stage = TRAIN.base.model_copy(
        update={"iterations": 40, "prompts_per_step": 12, "group_size": 16, "micro_batch": None, "evaluate_every": 40}
    )
    setup = replace(trained, out=tmp_path, train=TRAIN.model_copy(update={"base": stage}))

    train_stage(setup, "base", str(trained.folder("sft") / "final"))

    curve = curve_of(setup.folder("base") / "samples")
    first, last = (statistics.mean(each.accuracy or 0.0 for each in part) for part in (curve[:5], curve[-5:]))
    assert first < 0.6
    assert last > first + 0.2
    assert statistics.mean(each.valid for each in curve[-5:]) > 0.9


def test_completions_that_are_cut_earn_nothing(trained: Setup, tmp_path: Path) -> None:
    setup = from_warmup(trained, tmp_path, iterations=1, max_completion_tokens=4, evaluate_every=1)

    run_pipeline(setup, ("base",))

    kept = [each for batch in samples(setup.folder("base") / "samples").values() for each in batch]
    assert {(*each["problems"], each["reward"]) for each in kept} == {("completion-cut", 0.0)}
    assert [entry["cut"] for entry in metrics(setup) if "cut" in entry] == [1.0]


def test_a_report_of_strategies_is_written(trained: Setup) -> None:
    report = json.loads((trained.folder("base") / "strategies.json").read_text("utf-8"))

    assert report["workflows"] > 0
    assert len(report["patterns"]) <= 50
    assert [pattern["first"] for pattern in report["patterns"]] == sorted(p["first"] for p in report["patterns"])


def test_metrics_have_a_line_for_each_step(trained: Setup) -> None:
    lines = [json.loads(line) for line in (trained.out / "metrics.jsonl").read_text("utf-8").splitlines()]

    steps = [line["step"] for line in lines if line["stage"] == "base" and "reward" in line]
    assert steps == list(range(1, TRAIN.base.iterations + 1))
    assert all(0 <= line["valid"] <= 1 for line in lines if "valid" in line)


def test_an_interrupted_training_comes_to_the_same_weights_and_samples(trained: Setup, tmp_path: Path) -> None:
    begun = copy_until(trained, 2, tmp_path / "resumed")

    run_pipeline(begun, ("sft", "base"), resume=True)

    assert same(begun.folder("base") / "final", trained.folder("base") / "final")
    assert samples(begun.folder("base") / "samples") == samples(trained.folder("base") / "samples")
    assert (begun.out / "metrics.jsonl").read_text("utf-8").count('"step": 6') >= 1


def test_a_damaged_checkpoint_is_skipped_and_named(trained: Setup, tmp_path: Path) -> None:
    said: list[str] = []
    begun = replace(copy_until(trained, 4, tmp_path / "damaged"), say=said.append)
    newest = begun.folder("base") / "checkpoint-4" / "optimizer.pt"
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])

    run_pipeline(begun, ("sft", "base"), resume=True)

    assert any("checkpoint-4" in line and "optimizer.pt is damaged" in line for line in said)
    assert any("resumes from" in line and "checkpoint-2" in line for line in said)
    assert same(begun.folder("base") / "final", trained.folder("base") / "final")


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("trainer_state.json", b"{", "trainer_state.json cannot be read"),
        ("trainer_state.json", b'{"global_step": 3}', "has step 3"),
        ("model.safetensors", b"12345678", "model.safetensors is damaged"),
        ("model.safetensors", None, "there are no weights"),
        ("optimizer.pt", None, "optimizer.pt is missing"),
        ("scheduler.pt", b"PK", "scheduler.pt is damaged"),
        ("rng_state.pth", None, "rng_state.pth is missing"),
    ],
)
def test_what_is_wrong_with_a_checkpoint_is_said(
    trained: Setup, tmp_path: Path, file: str, content: bytes | None, problem: str
) -> None:
    checkpoint = tmp_path / "checkpoint-4"
    shutil.copytree(trained.folder("base") / "checkpoint-4", checkpoint)
    assert problem_of(checkpoint) is None
    if content is None:
        (checkpoint / file).unlink()
    else:
        (checkpoint / file).write_bytes(content)

    assert problem in str(problem_of(checkpoint))
    assert newest_complete(tmp_path).path is None


def test_a_folder_that_was_begun_is_not_overwritten(trained: Setup) -> None:
    with pytest.raises(UsageError, match="--resume"):
        run_pipeline(trained, ("sft", "base"))


@pytest.fixture(scope="module")
def revising(trained: Setup, tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """A stage of recursion in the generic way."""
    stage = TRAIN.recursion.model_copy(update={"iterations": 4})
    setup = replace(
        trained,
        out=tmp_path_factory.mktemp("revising"),
        train=TRAIN.model_copy(update={"recursion": stage}),
        extension=ExtensionConfig(),
    )
    train_stage(setup, "recursion", str(trained.folder("base") / "final"))
    return setup


def test_each_completion_revises_its_own_first_round(revising: Setup) -> None:
    kept = samples(revising.folder("recursion") / "samples")
    steps = [batch for name, batch in kept.items() if name.startswith("step")]
    answers: dict[int, list[Any]] = {}
    for each in (each for batch in steps for each in batch):
        answers.setdefault(each["row"], []).append(each["answer"])

    second = [each for batch in steps for each in batch if each["round"] == 2]

    assert [sum(each["round"] == 2 for each in batch) for batch in steps] == [0, 8, 8, 8]
    own = [each for each in second if answers[each["revises"]][each["index"]] is not None]
    assert len(own) > 0.8 * len(second)
    assert all(each["previous"][1] == answers[each["revises"]][each["index"]] for each in own)
    groups: dict[int, set[str]] = {}
    for each in second:
        groups.setdefault(each["row"], set()).add(each["previous"][1])
    assert max(map(len, groups.values())) > 1  # a group revises different answers
    assert {each["reward"] for batch in steps for each in batch} <= {0.0, 0.125, 0.25, 0.5, 1.0}
    evaluated = Counter(each["round"] for each in kept["eval-000000.jsonl.gz"])
    assert evaluated[1] >= evaluated[2] > 0.8 * len(revising.eval_tasks)
    assert evaluated.total() == 2 * len(revising.eval_tasks)


def test_an_interrupted_stage_of_second_rounds_comes_to_the_same_weights(revising: Setup, tmp_path: Path) -> None:
    broken = replace(revising, out=tmp_path / "broken")
    shutil.copytree(revising.out, broken.out)
    stage = broken.folder("recursion")
    shutil.rmtree(stage / "checkpoint-4")
    for path in (stage / "samples").glob("*-00000[23]*"):
        path.unlink()

    train_stage(broken, "recursion", str(stage / "final"), checkpoint=stage / "checkpoint-2")

    assert same(stage / "final", revising.folder("recursion") / "final")
    assert samples(stage / "samples") == samples(revising.folder("recursion") / "samples")


def test_forced_second_rounds_show_the_first_one(trained: Setup, tmp_path: Path) -> None:
    setup = replace(trained, out=tmp_path)

    train_stage(setup, "recursion", str(trained.folder("base") / "final"))

    kept = samples(tmp_path / "recursion" / "samples")
    rounds = [each["round"] for name, batch in kept.items() if name.startswith("step") for each in batch]
    assert sorted(name for name in kept if name.startswith("first")) == [
        f"first-{step:06d}.jsonl.gz" for step in range(TRAIN.recursion.iterations)
    ]
    assert rounds.count(2) == rounds.count(1) == TRAIN.recursion.iterations * TRAIN.recursion.batch_size / 2
    firsts = [each for name, batch in kept.items() if name.startswith("first-") for each in batch]
    assert len(firsts) == len({each["row"] for each in firsts})  # one of a group is paid for
    assert all(each["outcome"] != "invalid" for each in firsts)
    worth = {each["reward"] for name, batch in kept.items() if name.startswith("step") for each in batch}
    assert worth <= {0.0, 0.125, 0.25, 0.5, 1.0}
    evaluated = Counter(each["round"] for each in kept["eval-000000.jsonl.gz"])
    assert evaluated.total() == len(setup.eval_tasks)
    assert evaluated[2] > 0.8 * evaluated.total()  # all whose first round comes to an answer
    shares = [value for line in metrics(setup) for name, value in line.items() if name in ("kept", "eval_kept")]
    assert len(shares) == 2 + TRAIN.recursion.iterations  # evaluations before the first and behind the last
    assert all(0 <= share <= 1 for share in shares)


def test_exchanged_workers_answer_for_each_other_in_both_rounds(trained: Setup, tmp_path: Path) -> None:
    stage = TRAIN.recursion.model_copy(update={"forced": 1.0})
    tiny = TINY.model_copy(update={"swapped_descriptions": 1.0, "never_swapped": (2,)})
    setup = replace(trained, out=tmp_path, train=TRAIN.model_copy(update={"recursion": stage}), extension=tiny)

    train_stage(setup, "recursion", str(trained.folder("base") / "final"))

    kept = samples(tmp_path / "recursion" / "samples")
    evaluated = [each for name, batch in kept.items() if "eval" in name for each in batch]
    assert evaluated
    assert all(each["answering"] == each["shown"] for each in evaluated)
    answering = {
        (name[-15:], each["row"]): each["answering"]
        for name, batch in kept.items()
        if name.startswith("first") and "eval" not in name
        for each in batch
    }
    changed = [each for each in answering.values() if each != {"0": 0, "1": 1, "2": 2}]
    assert changed
    assert all(each == {"0": 1, "1": 0, "2": 2} for each in changed)
    for name, batch in kept.items():
        for each in batch if name.startswith("step") else ():
            assert each["answering"] == answering[name[-15:], each["row"]]
            if each["workflow"] is not None:  # what ran is not what was written
                (written,) = re.findall(r"model_id = (.*)", each["completion"])
                asked = [each["answering"][str(worker)] for worker in json.loads(written)]
                assert each["workflow"]["model_id"] == asked


def test_an_interrupted_stage_of_recursion_comes_to_the_same_weights(trained: Setup, tmp_path: Path) -> None:
    stage = TRAIN.recursion.model_copy(update={"iterations": 4})
    tiny = TINY.model_copy(
        update={"forced_prefix": ("recursion",), "class_balanced_groups": True, "swapped_descriptions": 0.5}
    )
    train, model = TRAIN.model_copy(update={"recursion": stage}), str(trained.folder("base") / "final")
    whole, broken = (
        replace(trained, out=tmp_path / name, train=train, extension=tiny, eval_tasks=())
        for name in ("whole", "broken")
    )
    train_stage(whole, "recursion", model)
    shutil.copytree(whole.out, broken.out)
    shutil.rmtree(broken.folder("recursion") / "checkpoint-4")
    for path in (broken.folder("recursion") / "samples").glob("*-00000[23]*"):
        path.unlink()

    train_stage(broken, "recursion", model, checkpoint=broken.folder("recursion") / "checkpoint-2")

    assert same(broken.folder("recursion") / "final", whole.folder("recursion") / "final")
    assert samples(broken.folder("recursion") / "samples") == samples(whole.folder("recursion") / "samples")


def test_supervised_steps_before_the_stage_of_recursion_are_done_once(trained: Setup, tmp_path: Path) -> None:
    stage = TRAIN.recursion.model_copy(update={"iterations": 1})
    tiny = TINY.model_copy(update={"recursion_sft": RecursionSftConfig(steps=3, batch_size=8)})
    said: list[str] = []
    setup = replace(
        trained,
        out=tmp_path,
        train=TRAIN.model_copy(update={"recursion": stage}),
        extension=tiny,
        say=said.append,
        eval_tasks=(),
    )
    before = str(trained.folder("base") / "final")

    train_stage(setup, "recursion", before)

    shown = tmp_path / "recursion" / "sft"
    losses = [json.loads(line) for line in (shown / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert losses[-1]["step"] == 3
    assert not same(shown, trained.folder("base") / "final")
    assert said == [f"recursion: 3 SFT steps from {before}"]
    weights = (shown / "model.safetensors").read_bytes()

    shutil.rmtree(tmp_path / "recursion" / "final")
    train_stage(setup, "recursion", before)

    assert len(said) == 1
    assert (shown / "model.safetensors").read_bytes() == weights


def test_supervised_steps_behind_a_stage_are_done_again_after_a_kill_in_them(trained: Setup, tmp_path: Path) -> None:
    train = TRAIN.model_copy(update={"base": TRAIN.base.model_copy(update={"iterations": 2})})
    tiny = TINY.model_copy(update={"replay": ReplayConfig(base=SftConfig(steps=3, batch_size=8), word_noise=0.5)})
    setup = replace(trained, out=tmp_path, train=train, extension=tiny, say=lambda _: None)
    shutil.copytree(trained.out / "new", tmp_path / "new")
    shutil.copytree(trained.folder("sft"), tmp_path / "sft")

    run_pipeline(setup, ("base",), resume=True)

    folder = setup.folder("base")
    losses = [json.loads(line) for line in (folder / "before-replay" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert losses[-1]["step"] == 3
    assert not same(folder / "final", folder / "before-replay")
    weights = (folder / "final" / "model.safetensors").read_bytes()
    evaluated = [line["step"] for line in metrics(setup) if "eval_accuracy" in line]
    assert evaluated == [0, 2, 3]  # the last one behind the supervised steps
    assert len(samples(folder / "samples")["eval-000003.jsonl.gz"]) == len(setup.eval_tasks)

    shutil.rmtree(folder / "final")
    run_pipeline(setup, ("base",), resume=True)

    assert (folder / "final" / "model.safetensors").read_bytes() == weights
    assert [line["step"] for line in metrics(setup) if "eval_accuracy" in line] == evaluated


def test_a_stage_that_shares_prompts_goes_as_one_that_does_not(trained: Setup, tmp_path: Path) -> None:
    kept, logged = [], []
    for share in (False, True):
        stage = TRAIN.recursion.model_copy(update={"beta": 0.04})
        train = TRAIN.model_copy(update={"recursion": stage, "prefix_cache": share})
        setup = replace(trained, out=tmp_path / str(share), train=train, eval_tasks=())
        train_stage(setup, "recursion", str(trained.folder("base") / "final"))
        kept.append(samples(setup.folder("recursion") / "samples"))
        lines = (setup.out / "metrics.jsonl").read_text("utf-8").splitlines()
        logged.append([entry for line in lines if "kl" in (entry := json.loads(line))])

    assert kept[0] == kept[1]
    for plain, shared in zip(*logged, strict=True):
        for name in ("loss", "grad_norm", "entropy", "kl"):
            assert shared[name] == pytest.approx(plain[name], rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("name", ["base", "recursion"])
def test_what_is_given_of_a_thought_is_true_and_no_reward_teaches_it(
    trained: Setup, tmp_path: Path, name: StageName
) -> None:
    stage = TRAIN.grpo(name).model_copy(update={"iterations": 2})
    train = TRAIN.model_copy(update={name: stage, "prefix_cache": True})
    tiny = TINY.model_copy(update={"forced_prefix": (name,)})
    setup = replace(trained, out=tmp_path, train=train, extension=tiny, eval_tasks=())
    model = str(trained.folder("base") / "final")

    train_stage(setup, name, model)

    tokenizer = AutoTokenizer.from_pretrained(model)
    kinds = {task.id: task.kind for task in setup.tasks}
    for step, entry in enumerate(line for line in metrics(setup) if "annotation_accuracy" in line):
        batch = samples(tmp_path / name / "samples")[f"step-{step:06d}.jsonl.gz"]
        assert (
            entry["annotation_accuracy"] == 1.0 or name == "recursion"
        )  # for whose second rounds this model has no shapes
        assert all(each["completion"].startswith(f"{kinds[each['task']]} 0 1 2") for each in batch)
        assert {each["round"] for each in batch} == ({1, 2} if name == "recursion" else {1})
        length = statistics.mean(len(tokenizer(each["completion"]).input_ids) for each in batch)
        assert entry["completions/mean_length"] < length - 2  # what was given is not counted, nor taught


def test_a_text_that_a_tokenizer_begins_by_itself_is_not_begun_twice(trained: Setup) -> None:
    tokenizer = AutoTokenizer.from_pretrained(trained.folder("base") / "final")
    row = {"prompt": [{"role": "user", "content": "What is 2 + 3?"}], "prefix": ""}
    plain = force_prefix(row, "math 0", tokenizer)
    tokenizer.bos_token = "<|user|>"  # with which the template begins, too
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|user|> $A", special_tokens=[("<|user|>", tokenizer.bos_token_id)]
    )

    again = force_prefix(row, "math 0", tokenizer)

    assert again["conversation"] == plain["conversation"] == row["prompt"]
    assert plain["prompt"].startswith("<|user|>")
    assert f"<|user|>{again['prompt']}" == plain["prompt"]
    assert plain["prompt"].endswith("<|assistant|>math 0")
    assert (
        completion_text(again, " S") == completion_text(again, [{"role": "assistant", "content": " S"}]) == "math 0 S"
    )


def test_trl_still_has_what_the_subclass_relies_on() -> None:
    own = inspect.signature(TinyRecursionTrainer._generate_and_score_completions)
    trls = inspect.signature(GRPOTrainer._generate_and_score_completions)
    generate = inspect.getsource(GRPOTrainer._generate)

    assert list(own.parameters) == list(trls.parameters) == ["self", "inputs"]
    assert "return prompt_ids, completion_ids, tool_mask, completions, logprobs" in generate
    assert list(inspect.signature(GRPOTrainer._generate).parameters) == ["self", "prompts"]


def test_a_group_revises_its_first_sample_with_an_answer() -> None:
    def of(row: int, pair: tuple[str, str] | None) -> Any:
        return SimpleNamespace(row={"row": row}, scored=SimpleNamespace(pair=pair))

    first = [of(1, None), of(1, ("Solve it.", "4")), of(2, None), of(1, ("Check it.", "5"))]

    assert first_with_answer(first) == {1: first[1]}


def test_as_many_groups_as_are_wanted_revise_an_answer_that_admits_a_doubt() -> None:
    sure, hedged = wording.CHECKS[PASSES][0], wording.HEDGES[0]

    def revised(doubtful: float | None, said: Sequence[str]) -> list[str]:
        samples: list[Any] = [
            SimpleNamespace(row={"row": row}, scored=SimpleNamespace(pair=("Solve it.", response)))
            for row in range(100)
            for response in said
        ]
        found = first_with_answer(samples) if doubtful is None else class_balanced(samples, doubtful=doubtful)
        chosen: list[Any] = list(found.values())
        return [each.scored.pair[1] for each in chosen]

    said = (f"{hedged}\n4", "4", sure, hedged, f"{hedged}\n5")
    assert set(revised(None, said)) == {said[0]}
    assert set(revised(0.0, said)) == {"4"}
    assert set(revised(1.0, said)) == {said[0]}
    assert 30 < revised(0.5, said).count("4") < 70
    assert set(revised(1.0, (sure, "4"))) == {sure}
    assert set(revised(0.0, (hedged,))) == {hedged}


def test_losses_are_those_that_trl_knows() -> None:
    source = inspect.getsource(GRPOTrainer._compute_loss)
    compared = " ".join(line for line in source.splitlines() if "self.loss_type" in line and "if " in line)

    assert set(LOSSES) == set(re.findall(r'"(\w+)"', compared))


def test_transformers_loads_the_tokenizer_that_was_saved(tmp_path: Path, trained: Setup) -> None:
    tokenizer = make_tokenizer(["Plan it. What is 17 * 23?", "Verify the answer."] * 20, vocabulary=330)
    tokenizer.save_pretrained(tmp_path)
    shutil.copyfile(trained.out / "new" / "config.json", tmp_path / "config.json")
    loaded = AutoTokenizer.from_pretrained(tmp_path)

    for text in ("12345 don't", 'a  b\n\n c_d [[0, 1], "all"]', "model_id = [0]\nsubtasks = [", "é ß 漢 \u0301"):
        assert loaded(text)["input_ids"] == tokenizer(text)["input_ids"]
        assert loaded.decode(loaded(text)["input_ids"]) == tokenizer.decode(tokenizer(text)["input_ids"])


def test_sharpening_scales_the_logits(trained: Setup) -> None:
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(trained.folder("base") / "final")
    before = network(torch.tensor([[5, 6, 7]])).logits

    scale_logits(network, 1.5)

    torch.testing.assert_close(network(torch.tensor([[5, 6, 7]])).logits, 1.5 * before)
