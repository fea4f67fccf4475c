"""Trainings that something ends, and that go on as if nothing had."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from tests.forked import TRAINING, Program  # noqa: E402
from tests.rl.training.toy import WORKERS, a_pool, copy_until, metrics, same, samples  # noqa: E402
from wfdsl.errors import UsageError  # noqa: E402
from wfdsl.experiment import Experiment  # noqa: E402
from wfdsl.interpreter.journal_file import lock_for_sole_use  # noqa: E402
from wfdsl_rl.training.pipeline import DiskFull, run_pipeline  # noqa: E402
from wfdsl_rl.training.plan import DONE, JOURNAL, RESOLVED, run_options  # noqa: E402

if TYPE_CHECKING:
    from tests.rl.training.toy import AsyncWorker
    from wfdsl_rl.training.plan import Setup

pytestmark = pytest.mark.slow

IN_A_PROCESS_OF_ITS_OWN = """
import sys
from pathlib import Path

from tests.rl.training.toy import a_setup
from wfdsl_rl.training.pipeline import run_pipeline

run_pipeline(a_setup(Path(sys.argv[1])), ("sft", "base"), resume=True)
"""


def warmed_up(trained: Setup, out: Path) -> Setup:
    """A copy of the training as it stands behind the warm-up."""
    shutil.copytree(trained.folder("sft"), out / "sft")
    return replace(trained, out=out)


def test_a_training_that_was_killed_comes_to_the_same_weights(trained: Setup, tmp_path: Path) -> None:
    begun = warmed_up(trained, tmp_path / "killed")
    folder = begun.folder("base")

    (tmp_path / "train.py").write_text(IN_A_PROCESS_OF_ITS_OWN)

    training = Program("train.py", str(begun.out), folder=tmp_path, imported=TRAINING)
    while training.poll() is None and not any(folder.glob("samples/step-000003*")):
        time.sleep(0.02)
    training.send_signal(signal.SIGKILL)

    assert training.wait() == -signal.SIGKILL
    assert (folder / "checkpoint-2").is_dir()
    assert not (folder / "final").exists()
    run_pipeline(begun, ("sft", "base"), resume=True)
    assert same(folder / "final", trained.folder("base") / "final")
    assert samples(folder / "samples") == samples(trained.folder("base") / "samples")


def counting(asked: list[str]) -> tuple[AsyncWorker, ...]:
    """The workers, with every call counted."""

    def counted(worker: AsyncWorker) -> AsyncWorker:
        async def answer(messages: list[dict[str, Any]]) -> str:
            asked.append(messages[-1]["content"])
            return await worker(messages)

        return answer

    return tuple(counted(worker) for worker in WORKERS)


def test_a_full_disk_is_said_and_after_it_no_call_is_made_twice(trained: Setup, tmp_path: Path) -> None:
    asked: list[str] = []
    begun = replace(warmed_up(trained, tmp_path / "full"), pool=a_pool(counting(asked)))

    def full(entry: dict[str, Any]) -> None:
        if entry["stage"] == "base" and entry["step"] == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with run_options(Experiment(), begun.pool, begun.out) as options, pytest.raises(DiskFull):
        run_pipeline(replace(begun, options=options, listeners=(full,)), ("sft", "base"), resume=True)
    before = len(asked)
    with run_options(Experiment(), begun.pool, begun.out) as options:
        run_pipeline(replace(begun, options=options), ("sft", "base"), resume=True)

    kept = samples(begun.folder("base") / "samples")
    replies = [reply for batch in kept.values() for each in batch for reply in each["replies"] if reply is not None]
    assert 0 < before < len(asked) == len(replies)
    assert same(begun.folder("base") / "final", trained.folder("base") / "final")
    steps = [[line["step"] for line in metrics(each) if "reward" in line] for each in (begun, trained)]
    assert steps[0] == steps[1]


@pytest.mark.parametrize("stage", ["base", "recursion"])
def test_a_stage_that_has_not_ended_has_to_be_continued_before_another_one(
    trained: Setup, tmp_path: Path, stage: str
) -> None:
    begun = copy_until(trained, 2, tmp_path / "begun")

    with pytest.raises(UsageError, match=r"not finished it; continue it with --resume .*begun, or use another --out"):
        run_pipeline(begun, (stage,), resolved={"experiment": "another"})

    assert not begun.folder("recursion").exists()
    assert not (begun.out / RESOLVED).exists()


def test_a_folder_in_which_another_process_trains_is_left_alone_and_half_a_model_is_made_again(
    trained: Setup, tmp_path: Path
) -> None:
    begun = copy_until(trained, 6, tmp_path / "begun")  # killed while `final` was written
    final = begun.folder("base") / "final"
    final.mkdir()
    (final / "model.safetensors").write_bytes(b"half")

    other = lock_for_sole_use(begun.out / JOURNAL)
    with pytest.raises(UsageError):
        run_pipeline(begun, ("sft", "base"), resume=True, resolved={"experiment": "another"})
    os.close(other)

    assert not (begun.out / RESOLVED).exists()
    assert (final / "model.safetensors").read_bytes() == b"half"
    run_pipeline(begun, ("sft", "base"), resume=True)
    assert (final / DONE).is_file()
    assert same(final, trained.folder("base") / "final")
