"""The plots of a stage: reward and accuracy, steps per kind of question, worker share, topology mix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wfdsl_rl.evaluation.plots import COLOURS, figure, save
from wfdsl_rl.training.samples import Iteration

_SHARES: Final = {
    "worker-share": "Share of calls by worker",
    "topology-mix": "Share of valid workflows by topology",
}
_WINDOW: Final = 5  # iterations that a point of a line is the mean of
_ALONE: Final = "each worker alone, held-out questions"
_NAME_HEIGHT: Final = 0.035  # of a worker's name, on the axis from 0 to 1


def draw_stage(
    iterations: Sequence[Iteration],
    held_out: Sequence[Iteration],
    folder: Path,
    *,
    alone: Mapping[str, float],
    names: Mapping[int, str],
    simulated: bool,
) -> list[Path]:
    """Draw what a stage's iterations show; gives the files, PNG and SVG. What there is nothing of is not drawn.

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
    with figure(7.2, 4.6, simulated=simulated) as (drawn, (axes,)):
        at = [each.step for each in iterations]
        for number, (name, values) in enumerate(_learning(iterations).items()):
            axes.plot(at, smoothed(values), color=COLOURS[number], label=name)
        if held_out:
            points = [each for each in held_out if each.accuracy is not None]
            axes.plot(
                [each.step for each in points],
                [each.accuracy for each in points],
                "o--",
                color="#000000",
                markersize=4,
                label="accuracy, held-out questions",
            )
        _draw_alone(axes, alone)
        axes.set_ylim(0, 1.02)
        _label_iterations(axes)
        axes.set_ylabel("share, or mean reward")
        axes.set_title(f"Learning (lines: means of the last {_WINDOW} iterations)")
        drawn.legend(fontsize=7.5, loc="outside upper left", ncols=3, frameon=False)
        return save(drawn, folder, "learning")


def _learning(iterations: Sequence[Iteration]) -> dict[str, Sequence[float | None]]:
    """What the lines show; rounds apart in a stage that has second ones."""
    lines: dict[str, Sequence[float | None]] = {
        "reward": [each.reward for each in iterations],
        "valid completions": [each.valid for each in iterations],
    }
    if not any(2 in each.by_round for each in iterations):
        return {**lines, "accuracy, training questions": [each.accuracy for each in iterations]}
    lines["accuracy, first round"] = [each.by_round.get(1) for each in iterations]
    lines["accuracy, second round"] = [each.by_round.get(2) for each in iterations]
    return lines


def _draw_alone(axes: Any, alone: Mapping[str, float]) -> None:
    """A line for each worker alone on the held-out questions, with its name to the right of the axes."""
    heights = spread(sorted(alone.values()), _NAME_HEIGHT)
    by_accuracy = sorted(alone.items(), key=lambda item: item[1])
    for rank, ((name, accuracy), height) in enumerate(zip(by_accuracy, heights, strict=True)):
        axes.axhline(accuracy, color="#999999", linewidth=0.7, linestyle=":", label=None if rank else _ALONE)
        axes.annotate(
            f"{name} {100 * accuracy:.0f} %",
            (1.0, height),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=7,
            va="center",
            color="#666666",
        )


def _label_iterations(axes: Any) -> None:
    axes.set_xlabel("iteration")
    axes.xaxis.get_major_locator().set_params(integer=True)


def spread(values: Sequence[float], distance: float) -> list[float]:
    """Ascending values, moved up where they are nearer to each other than a distance, and down where they pass 1."""
    found: list[float] = []
    for value in values:
        found.append(max(value, found[-1] + distance) if found else value)
    top = 1.0
    for at in reversed(range(len(found))):
        found[at] = min(found[at], top)
        top = found[at] - distance
    return found


def _draw_steps(iterations: Sequence[Iteration], folder: Path, *, simulated: bool) -> list[Path]:
    kinds = sorted({kind for each in iterations for kind in each.steps})
    if not kinds:
        return []
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
        _label_iterations(axes)
        axes.set_ylabel("mean steps of valid workflows")
        axes.set_title(f"Steps by kind of question (means of the last {_WINDOW} iterations)")
        axes.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return save(drawn, folder, "steps-by-kind")


def _draw_shares(
    iterations: Sequence[Iteration],
    shares: Mapping[str, Sequence[float | None]],
    folder: Path,
    name: str,
    *,
    simulated: bool,
) -> list[Path]:
    if not any(map(any, shares.values())):
        return []
    with figure(7.2, 3.8, simulated=simulated) as (drawn, (axes,)):
        at = [each.step for each in iterations]
        axes.stackplot(
            at,
            [[value or 0.0 for value in smoothed(values)] for values in shares.values()],
            labels=list(shares),
            colors=[COLOURS[number % len(COLOURS)] for number in range(len(shares))],
        )
        axes.set_ylim(0, 1)
        axes.set_xlim(at[0], max(at[-1], at[0] + 1))
        _label_iterations(axes)
        axes.set_ylabel(f"share, mean of the last {_WINDOW}")
        axes.set_title(_SHARES[name])
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return save(drawn, folder, name)


def _worker_shares(iterations: Sequence[Iteration], names: Mapping[int, str]) -> dict[str, list[float | None]]:
    return {
        f"{ordinal}: {name}": [_share(each.workers, ordinal) for each in iterations] for ordinal, name in names.items()
    }


def _topologies(iterations: Sequence[Iteration]) -> dict[str, list[float | None]]:
    found = sorted({name for each in iterations for name in each.topologies})
    return {name: [_share(each.topologies, name) for each in iterations] for name in found}


def _share(counts: Mapping[Any, int], name: Any) -> float | None:
    """The part that one has of all; None where there is nothing at all, so that means are not pulled down."""
    total = sum(counts.values())
    return counts.get(name, 0) / total if total else None


def smoothed(values: Sequence[Any]) -> list[Any]:
    """The mean of each value and the few before it; None where there is none."""
    found = []
    for at in range(len(values)):
        window = [value for value in values[max(0, at - _WINDOW + 1) : at + 1] if value is not None]
        found.append(sum(window) / len(window) if window else None)
    return found
