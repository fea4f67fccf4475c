"""Samples as files, the figures of an iteration, and warnings about metrics, workflows and answers.

The figures are those of arXiv 2512.04388: reward and accuracy (figure 3), worker share (figure 10).
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from wfdsl.evaluation.workflow_statistics import Case, asked_steps, entropy_bits, signatures_of
from wfdsl.files import read_json_lines, write_whole
from wfdsl.language.workflow import Workflow
from wfdsl_rl.scoring import Sample, right_share


class SampleFiles:
    """Writes the batches of each step to a file, so that a step that is repeated after a kill writes it again."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._begun = folder, set[Path]()
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, samples: Sequence[Sample]) -> None:
        """Write a batch."""
        path = self._folder / f"step-{samples[0].step:06d}.jsonl.gz"
        lines = "".join(json.dumps(sample.to_dict(), ensure_ascii=False) + "\n" for sample in samples)
        packed = gzip.compress(lines.encode(errors="replace"), compresslevel=1, mtime=0)
        if path in self._begun:  # TRL's asynchronous trainer with a server scores each group by itself
            with path.open("ab") as file:
                file.write(packed)
        else:
            self._begun.add(path)
            write_whole(path, packed)


def read_samples(path: Path) -> list[dict[str, Any]]:
    """The samples of a file, as `Sample.to_dict` has them."""
    return [sample for _, sample in read_json_lines(path)]


def case_of(sample: Mapping[str, Any]) -> Case:
    """A completion that was kept, as `Sample.to_dict` has it."""
    workflow, before = sample["workflow"], sample["previous"]
    answer = None if before is None or sample["kept"] else sample["answer"]
    return Case(
        kind=sample.get("domain") or sample["kind"],
        workflow=None if workflow is None else Workflow.from_lists(**workflow),
        right=right_share(sample["outcomes"]),
        completions=1,
        invalid=int(sample["outcome"] == "invalid"),
        later=int(answer is not None),
        unchanged=int(before is not None and answer == before[1]),
    )


def figures_of(samples: Sequence[Sample], cases: Sequence[Case]) -> dict[str, float]:
    """What is logged of a batch: by kind of question the reward, each worker's share and the entropy of the choice.

    `constant_groups` is the share of the questions whose completions all have the same reward, so that nothing is
    learned from them. TRL's own count is 0 where rewards are scaled by batch.
    """
    groups, rewards = defaultdict[int, set[float]](set), defaultdict[str, list[float]](list)
    workflows = [case.workflow for case in cases if case.workflow is not None]
    calls = Counter(int(each[step].worker) for each in workflows for step in asked_steps(each))  # dead ones are none
    signs = signatures_of(cases, names={worker: str(worker) for worker in calls})
    for case, each in zip(cases, samples, strict=True):
        own = groups[each.row["row"]]
        if each.reward is not None:
            own.add(each.reward)
            rewards[case.kind].append(each.reward)
    return {
        "constant_groups": fmean(len(own) < 2 for own in groups.values()),
        "choice_entropy": entropy_bits(calls),
        "worker_mismatch": signs.mismatch,
        **({} if signs.unchanged is None else {"rounds_unchanged": signs.unchanged}),
        **{f"reward/{kind}": fmean(own) for kind, own in sorted(rewards.items())},
        **{f"choice_entropy/{kind}": bits for kind, bits in signs.entropy_bits.items()},
        **{f"share/{kind}/{worker}": part for kind, own in signs.share.items() for worker, part in own.items()},
    }


def latency_of(samples: Sequence[Sample]) -> dict[str, float]:
    """How long the calls of a batch took, in seconds, and which worker is the slowest; nothing without calls."""
    steps = [step for sample in samples for run in sample.scored.runs for step in run.steps if not step.replayed]
    calls = [(step.worker, step.seconds) for step in steps if step.seconds is not None]
    if not calls:
        return {}
    every, workers = sorted(seconds for _, seconds in calls), {worker for worker, _ in calls}
    slowest_s, slowest = max((fmean(seconds for asked, seconds in calls if asked == each), each) for each in workers)
    return {
        "latency_p50_s": every[len(every) // 2],
        "latency_p95_s": every[len(every) * 95 // 100],
        "slowest_worker": float(slowest),
        "slowest_worker_s": slowest_s,
    }


_TOGETHER: Final = 5
"""Iterations that warnings look at together. Our choice."""
_REASONS: Final = 5
"""How many reasons for completions without a score are printed. Our choice."""


class HealthChecks:
    """A listener that returns the figures of each batch. It says why completions have no score, and warns once of each
    way in which the last iterations fail: a collapse is that nearly all calls ask one worker."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._reasons, self._warned = set[str](), set[str]()
        self._cases: deque[Sequence[Case]] = deque(maxlen=_TOGETHER)

    def __call__(self, samples: Sequence[Sample]) -> dict[str, float]:
        """Check a batch; its figures."""
        said = f"warning: step {samples[0].step}:"
        unscored = [sample.scored.problems[0] for sample in samples if not sample.scored.has_score]
        for reason in dict.fromkeys(unscored):
            if reason not in self._reasons and len(self._reasons) < _REASONS:
                self._reasons.add(reason)
                counts = f"{len(unscored)} of {len(samples)} completions have no score and are left out"
                self._say(f"{said} {counts}, such as: {reason}")
        cases = [case_of(sample.to_dict()) for sample in samples]
        self._cases.append(cases)
        if len(self._cases) == _TOGETHER:
            warnings = signatures_of(chain.from_iterable(self._cases)).warnings
            for code in [code for code in warnings if code not in self._warned]:
                self._warned.add(code)
                self._say(f"{said} {warnings[code]}")
        return {**figures_of(samples, cases), **latency_of(samples)}
