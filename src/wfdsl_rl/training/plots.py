"""The plots of a stage: reward and accuracy, steps per kind of question, worker share, topology mix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wfdsl_rl.evaluation.drawing import COLOURS, figure, save

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from wfdsl_rl.training.curves import Iteration

_SHARES: Final = {"worker-share": "Share of calls by worker", "topology-mix": "Share of workflows by topology"}
_WINDOW: Final = 5  # iterations that a point of a line is the mean of


def draw_stage(
    iterations: Sequence[Iteration],
    held_out: Sequence[Iteration],
    folder: Path,
    *,
    alone: Mapping[str, float],
    names: Mapping[int, str],
    simulated: bool,
) -> list[Path]:
    """Draw what a stage's iterations show; gives the files, PNG and SVG.

    `alone` is each worker's accuracy by its name, `names` the workers' names by ordinal.

    Raises:
        UsageError: matplotlib is not installed.
    """
    if not iterations:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    return [
        *_draw_learning(iterations, held_out, folder, alone, simulated=simulated),
        *_draw_steps(iterations, folder, simulated=simulated),
        *_draw_shares(iterations, _worker_shares(iterations, names), folder, "worker-share", simulated=simulated),
        *_draw_shares(iterations, _topologies(iterations), folder, "topology-mix", simulated=simulated),
    ]


def _draw_learning(
    iterations: Sequence[Iteration],
    held_out: Sequence[Iteration],
    folder: Path,
    alone: Mapping[str, float],
    *,
    simulated: bool,
) -> list[Path]:
    with figure(7.2, 4.4, simulated=simulated) as (drawn, (axes,)):
        at = [each.step for each in iterations]
        lines: dict[str, Sequence[float | None]] = {
            "reward": [each.reward for each in iterations],
            "accuracy while training": [each.accuracy for each in iterations],
            "valid": [each.valid for each in iterations],
        }
        for number, (name, values) in enumerate(lines.items()):
            axes.plot(at, smoothed(values), color=COLOURS[number], label=name)
        if held_out:
            points = [each for each in held_out if each.accuracy is not None]
            axes.plot(
                [each.step for each in points],
                [each.accuracy for each in points],
                "o--",
                color="#000000",
                markersize=4,
                label="accuracy on held-out questions",
            )
        for rank, (name, accuracy) in enumerate(sorted(alone.items(), key=lambda item: -item[1])):
            axes.axhline(accuracy, color="#999999", linewidth=0.7, linestyle=":")
            if rank in (0, len(alone) - 1):
                axes.annotate(
                    f"{name} alone",
                    (1.0, accuracy),
                    xycoords=("axes fraction", "data"),
                    xytext=(-3, 2),
                    textcoords="offset points",
                    fontsize=7,
                    ha="right",
                    color="#666666",
                )
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("iteration")
        axes.set_title(f"Learning (lines: means of {_WINDOW} iterations)")
        axes.legend(fontsize=7.5, loc="lower right")
        return save(drawn, folder, "learning")


def _draw_steps(iterations: Sequence[Iteration], folder: Path, *, simulated: bool) -> list[Path]:
    kinds = sorted({kind for each in iterations for kind in each.steps})
    with figure(6.4, 3.8, simulated=simulated) as (drawn, (axes,)):
        for number, kind in enumerate(kinds):
            found = [(each.step, each.steps[kind]) for each in iterations if kind in each.steps]
            axes.plot(
                [step for step, _ in found],
                smoothed([value for _, value in found]),
                color=COLOURS[number],
                label=kind,
            )
        axes.set_ylim(bottom=0)
        axes.set_xlabel("iteration")
        axes.set_ylabel("steps of a workflow")
        axes.set_title("Steps by kind of question")
        axes.legend(fontsize=7.5)
        return save(drawn, folder, "steps-by-kind")


def _draw_shares(
    iterations: Sequence[Iteration],
    shares: Mapping[str, Sequence[float]],
    folder: Path,
    name: str,
    *,
    simulated: bool,
) -> list[Path]:
    with figure(7.2, 3.8, simulated=simulated) as (drawn, (axes,)):
        at = [each.step for each in iterations]
        axes.stackplot(
            at,
            [smoothed(values) for values in shares.values()],
            labels=list(shares),
            colors=[COLOURS[number % len(COLOURS)] for number in range(len(shares))],
        )
        axes.set_ylim(0, 1)
        axes.set_xlim(at[0], max(at[-1], at[0] + 1))
        axes.set_xlabel("iteration")
        axes.set_title(_SHARES[name])
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return save(drawn, folder, name)


def _worker_shares(iterations: Sequence[Iteration], names: Mapping[int, str]) -> dict[str, list[float]]:
    return {
        f"{ordinal}: {name}": [each.workers.get(ordinal, 0) / max(sum(each.workers.values()), 1) for each in iterations]
        for ordinal, name in names.items()
    }


def _topologies(iterations: Sequence[Iteration]) -> dict[str, list[float]]:
    found = sorted({name for each in iterations for name in each.topologies})
    return {
        name: [each.topologies.get(name, 0) / max(sum(each.topologies.values()), 1) for each in iterations]
        for name in found
    }


def smoothed(values: Sequence[Any]) -> list[Any]:
    """The mean of each value and the few before it; None where there is none."""
    found = []
    for at in range(len(values)):
        window = [value for value in values[max(0, at - _WINDOW + 1) : at + 1] if value is not None]
        found.append(sum(window) / len(window) if window else None)
    return found
