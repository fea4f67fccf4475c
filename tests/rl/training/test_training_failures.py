"""What goes wrong while a model is trained, and what cannot be trained at all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.installation import install_command

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from trl import GRPOTrainer  # noqa: E402

from tests.rl.training.toy import QUESTIONS, WORKERS, a_pool, from_warmup, metrics, samples  # noqa: E402
from wfdsl.errors import UsageError  # noqa: E402
from wfdsl.grading import code  # noqa: E402
from wfdsl.grading.sandbox import SandboxMissing  # noqa: E402
from wfdsl.tasks.task import CodeTests, Task  # noqa: E402
from wfdsl_rl.scoring import RewardValues  # noqa: E402
from wfdsl_rl.training import estimate  # noqa: E402
from wfdsl_rl.training.pipeline import run_pipeline  # noqa: E402
from wfdsl_rl.training.stages import Diverged  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rl.training.toy import AsyncWorker
    from wfdsl_rl.training.plan import Setup

pytestmark = pytest.mark.slow


def down_for_math(worker: AsyncWorker) -> AsyncWorker:
    async def answer(messages: list[dict[str, Any]]) -> str:
        if messages[0]["content"].startswith(QUESTIONS["math"].split("{")[0]):
            raise ConnectionError("the line is dead")
        return await worker(messages)

    return answer


def test_groups_without_outcomes_are_left_out_counted_and_told(
    trained: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[str] = []
    advantages: list[tuple[str, float]] = []
    setup = from_warmup(trained, tmp_path, max_steps=1, save_steps=1)
    plain = GRPOTrainer.compute_loss

    def watched(self: Any, model: Any, inputs: dict[str, Any], *rest: Any, **named: Any) -> Any:
        if model.training:
            prompts = self.processing_class.batch_decode(inputs["prompt_ids"], skip_special_tokens=True)
            asked = [next(task.id for task in setup.tasks if task.question in prompt) for prompt in prompts]
            advantages.extend(zip(asked, inputs["advantages"].tolist(), strict=True))
        return plain(self, model, inputs, *rest, **named)

    monkeypatch.setattr(GRPOTrainer, "compute_loss", watched)
    setup = replace(setup, pool=a_pool(tuple(map(down_for_math, WORKERS))), say=said.append)

    run_pipeline(setup, ("base",))

    kinds = {task.id: task.kind for task in setup.tasks}
    (kept,) = samples(tmp_path / "base" / "samples").values()
    of_math = [each for each in kept if kinds[each["task"]] == "math" and each["outcome"] != "invalid"]
    (logged,) = (entry for entry in metrics(setup) if "reward" in entry)
    assert of_math
    assert {(each["outcome"], each["reward"]) for each in of_math} == {("failed", None)}
    assert all(worth == 0.0 for task, worth in advantages if kinds[task] == "math" and task in failed_groups(kept))
    assert any(worth != 0.0 for _, worth in advantages)
    assert logged["failed"] == pytest.approx(len(of_math) / len(kept))
    assert any("have no score and are left out" in line and "the line is dead" in line for line in said)
    assert "reward functions returned None" not in caplog.text


def failed_groups(kept: list[dict[str, Any]]) -> set[str]:
    """The tasks none of whose completions has an outcome."""
    return {each["task"] for each in kept} - {each["task"] for each in kept if each["outcome"] != "failed"}


def test_a_gradient_that_is_no_finite_number_stops_the_training(trained: Setup, tmp_path: Path) -> None:
    setup = from_warmup(trained, tmp_path, max_steps=2, scale_rewards="none")
    reward = RewardValues(right=1e36)
    setup = replace(setup, train=replace(setup.train, reward=reward))

    with pytest.raises(Diverged, match="use a smaller learning rate for the stage base"):
        run_pipeline(setup, ("base",))

    assert not list(setup.folder("base").glob("checkpoint-*"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trl": {"use_vllm": True}}, "package: vllm; pip install"),
        ({"fsdp": "on"}, "train.fsdp: one process divides nothing; set train.processes"),
    ],
)
def test_what_cannot_be_trained_is_said_before_anything_is_begun(
    trained: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(estimate, "find_spec", lambda name: None if name == "vllm" else name)
    setup = replace(trained, out=tmp_path / "out", train=replace(trained.train, **change))

    with pytest.raises(UsageError, match=message):
        run_pipeline(setup, ("sft", "base"))

    assert not setup.out.exists()


@pytest.mark.parametrize("option", [{"sync_ref_model": True}, {"min_p": 2.0}, {"report_to": ["wandb"]}])
def test_options_that_are_refused_while_a_trainer_begins_are_named_and_no_worker_is_asked(
    trained: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: dict[str, Any]
) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    setup = from_warmup(trained, tmp_path)

    for _ in range(2):  # the folder can be used again
        with pytest.raises(UsageError, match=f"train.trl .*{next(iter(option))}"):
            run_pipeline(replace(setup, train=replace(setup.train, trl=option)), ("base",))

    assert not list(setup.folder("base").glob("samples/*"))


@pytest.mark.parametrize(
    ("lost", "message"),
    [("model.safetensors", "no file named model.safetensors"), ("chat_template.jinja", "needs a chat template")],
)
def test_a_folder_without_a_part_of_its_model_is_named(trained: Setup, tmp_path: Path, lost: str, message: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained.folder("sft") / "final", folder, ignore=shutil.ignore_patterns(lost))
    setup = replace(trained, out=tmp_path / "out", train=replace(trained.train, model=str(folder)))

    with pytest.raises(UsageError, match=message):
        run_pipeline(setup, ("base",))

    (folder / "model.safetensors").write_bytes(b"half")
    with pytest.raises(UsageError, match="cannot be loaded"):
        run_pipeline(setup, ("base",), resume=True)


def test_programs_that_nobody_can_grade_are_not_trained_on(
    trained: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Any:
        raise SandboxMissing("`bwrap` is not installed: install bubblewrap")

    monkeypatch.setattr(code, "shared_sandbox", missing)
    tests = CodeTests(style="stdin", inputs=("",), expected=("1",))
    task = Task(id="c", question="Print 1.", gold="", kind="code", tests=tests)

    with pytest.raises(SandboxMissing, match="install bubblewrap"):
        run_pipeline(replace(trained, out=tmp_path / "out", tasks=(*trained.tasks, task)), ("base",))

    assert not (tmp_path / "out").exists()


def test_without_the_packages_for_training_it_is_said_what_to_install(tmp_path: Path) -> None:
    without = "import sys; sys.modules['transformers'] = None; from wfdsl_rl.cli.train import main; sys.exit(main())"

    ended = subprocess.run(
        [sys.executable, "-c", without, "gym", "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 2
    assert f"training needs the package transformers: {install_command('rl')}" in ended.stderr
    assert "Traceback" not in ended.stderr
