"""The folder of an evaluation: what stands in it, and how it is written and read back.

`manifest.json` says what was evaluated, `results.jsonl` holds a result a line; the summaries and plots are made of the
results and can be made again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wfdsl_rl.baselines.learning_costs import learning_table, read_learning_costs
from wfdsl_rl.evaluation.manifest import read_manifest
from wfdsl_rl.evaluation.results import read_cells
from wfdsl_rl.evaluation.summary import summarise
from wfdsl_rl.evaluation.tables import csv_of, markdown_of, markdown_table
from wfdsl_rl.strategies import strategies_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from wfdsl_rl.evaluation.cell import Cell
    from wfdsl_rl.evaluation.summary import Summary
    from wfdsl_rl.strategies import Strategies

RESULTS = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Report:
    """An evaluation as its folder has it."""

    folder: Path
    manifest: Mapping[str, Any]
    cells: tuple[Cell, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies, in the order in which they were named."""
        return tuple(self.manifest["policies"])

    @property
    def simulated(self) -> bool:
        """Whether workers were simulated."""
        return bool(self.manifest["simulated"])

    def of(self, policy: str) -> list[Cell]:
        """The results of a policy."""
        return [cell for cell in self.cells if cell.policy == policy]

    def summary(self) -> Summary:
        """What the results say together."""
        return summarise(self.cells, policies=self.policies, simulated=self.simulated)

    def strategies(self, *, patterns: int = 10) -> dict[str, Strategies]:
        """What the workflows of each policy look like, all rounds together."""
        workers = self.manifest["pool"]["workers"]
        names = {int(ordinal): entry["name"] for ordinal, entry in workers.items()}
        return {
            policy: strategies_of(
                (workflow for cell in self.of(policy) for workflow in cell.rounds), names=names, patterns=patterns
            )
            for policy in self.policies
        }


def read_report(folder: Path) -> Report:
    """Read an evaluation's folder; its results come in the order in which they were asked for, not in that of answers.

    Raises:
        UsageError: it holds no evaluation, or a file in it is damaged.
    """
    manifest = read_manifest(folder)
    tasks = {name: place for place, name in enumerate(manifest["tasks"]["ids"])}
    policies = {name: place for place, name in enumerate(manifest["policies"])}
    cells = [cell for cell in read_cells(folder / RESULTS).values() if cell.task in tasks and cell.policy in policies]
    cells.sort(key=lambda cell: (tasks[cell.task], cell.repeat, policies[cell.policy]))
    return Report(folder, manifest, tuple(cells))


def write_summaries(report: Report, *, plots: bool = True) -> list[Path]:
    """Write `summary.json`, `summary.csv`, `summary.md` and the plots; gives the files.

    Raises:
        UsageError: plots were asked for and matplotlib is not installed.
    """
    summary, folder = report.summary(), report.folder
    texts = {
        "summary.json": json.dumps(summary.to_dict(), ensure_ascii=False, indent=2) + "\n",
        "summary.csv": csv_of(summary),
        "summary.md": markdown_of(summary, title=f"Evaluation {report.manifest['id']}") + _learning(folder),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    written = [folder / name for name in texts]
    if plots:
        from wfdsl_rl.evaluation.plots import draw_plots  # noqa: PLC0415  (not everybody wants plots)

        written += draw_plots(summary, folder)
    return written


def _learning(folder: Path) -> str:
    """The table of what learning has cost; nothing if no policy had to learn."""
    costs = read_learning_costs(folder)
    return f"\n{markdown_table(*learning_table(costs))}\n" if costs else ""
