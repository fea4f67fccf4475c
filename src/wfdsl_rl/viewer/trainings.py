"""Pages of trainings: curves with errors, steps and workers by kind of question, and samples; live while it trains.

Trainings are found in the folders that `wfdsl view` is given: the output folder of `wfdsl-train`, or one that holds
such folders. The runs of real workers are in the training's own journal.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from wfdsl.conductor.round_log import Completion
from wfdsl.errors import UsageError
from wfdsl.evaluation.statistics import Mean
from wfdsl.installation import install_command
from wfdsl.viewer.app import Pages, Viewer
from wfdsl.viewer.changes import RunIndex, event_stream
from wfdsl.viewer.completion_text import lines_of
from wfdsl.viewer.conversation import Excerpts
from wfdsl.viewer.page import page
from wfdsl_rl.training.plots import Means, curve_svg, running_means
from wfdsl_rl.viewer.folders import find_folders
from wfdsl_rl.viewer.training_folder import HELD_OUT, Stage, TrainingFolder, is_training, number_of
from wfdsl_rl.viewer.training_samples import OUTCOMES, SPLITS, Batch, Filters, Kept, SampleFolder, by_kind

_PAGE: Final = 50
"""Samples of one page. Our choice."""
_RECENT: Final = 10
"""Iterations that the table by kind of question sums up. Our choice."""
_MOST_KINDS: Final = 100
_AFTER: Final = re.compile(r"((?:step|eval|first)-[0-9]{1,12}):([0-9]{1,9})")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that has a curve."""

    name: str
    """Names it in addresses."""
    key: str
    """Its name in log entries."""
    label: str
    is_share: bool = False


METRICS: Final = (
    Metric("reward", "reward", "mean reward"),
    Metric("accuracy", "accuracy", "share of right answers", is_share=True),
    Metric("valid", "valid", "share of valid completions", is_share=True),
    Metric("steps", "steps", "steps of a valid workflow"),
    Metric("tokens", "completions/mean_length", "tokens of a completion"),
    Metric("cost", "usd", "US dollars of an iteration"),
    Metric("entropy", "entropy", "entropy"),
    Metric("kl", "kl", "KL divergence"),
    Metric("loss", "loss", "loss"),
)
"""In the order in which they are shown; those of which a stage has no value but 0 are left out."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A curve on a page."""

    metric: Metric
    address: str
    """Below the page of the training."""
    alt: str


def pages(folders: Sequence[Path]) -> Pages:
    """The pages of the trainings in some folders."""
    found = _Trainings(folders)
    stage = "/trainings/{id}/{stage}"
    return Pages(
        title="Trainings",
        path="/trainings",
        routes=[
            Route("/trainings", found.show_all),
            Route("/trainings/{id}", found.show),
            Route("/trainings/{id}/events", found.events),
            Mount("/trainings/{id}/journal", app=found.runs),
            Route(f"{stage}/curves/{{name}}.svg", found.curve),
            Route(f"{stage}/samples", found.samples),
            Route(f"{stage}/samples/{{batch}}/{{index:int}}", found.sample),
        ],
        templates=Path(__file__).parent / "templates",
        close=found.close,
    )


class _Trainings:
    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._known: dict[Path, TrainingFolder] = {}
        self._drawn: dict[tuple[str, str, str], tuple[object, str]] = {}
        self._journals: dict[str, Starlette] = {}
        self._drawing = threading.Lock()  # matplotlib's settings are those of the process

    def show_all(self, request: Request) -> Response:
        """The trainings that were found, the latest first."""
        found = []
        for training in self._trainings():
            stages = training.stages()
            begun = [stage for stage in stages if stage.entries]
            found.append((training, training.state(stages), stages, begun[-1] if begun else None))
        found.sort(key=lambda each: each[0].changed() or 0.0, reverse=True)
        return page(request, "trainings.html", trainings=found, folders=self._folders, held_out=_held_out)

    def show(self, request: Request) -> Response:
        """One training."""
        training = self._find(request)
        version = training.version()  # read first: a page is rather shown again than not
        stages = training.stages()
        return page(
            request,
            "training.html",
            training=training,
            version=version,
            stages=stages,
            state=training.state(stages),
            held_out=_held_out,
            pictures={stage.name: _pictures(stage) for stage in stages},
            tables={stage.name: _tables(stage.samples) for stage in stages},
            recent=_RECENT,
            problem="" if find_spec("matplotlib") else f"Curves need matplotlib: {install_command('eval')}",
        )

    async def events(self, request: Request) -> Response:
        """Tells the page of a training when it has changed."""
        return event_stream(request.app.state.index, request, self._find(request).version)

    def curve(self, request: Request) -> Response:
        """The curve of a metric, as a picture of its own: its styles are no part of the page."""
        training = self._find(request)
        stage = self._stage(request, training)
        metric = next((each for each in METRICS if each.name == request.path_params["name"]), None)
        if metric is None or not _has(stage, metric):
            raise HTTPException(404, f"The stage {stage.name} has no curve {request.path_params['name']!r}.")
        try:
            svg = self._draw(training, stage, metric)
        except UsageError as error:
            raise HTTPException(404, str(error)) from error
        kept = "private, max-age=31536000, immutable" if "v" in request.query_params else "private, no-cache"
        return Response(svg, media_type="image/svg+xml", headers={"cache-control": kept})

    async def runs(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The pages of the runs in the journal of a training."""
        request = Request(scope)
        training = await run_in_threadpool(self._find, request)
        app = self._journal(training, request.app.state.viewer)
        if app is None:
            raise HTTPException(404, f"The training {training.name} has no journal: simulated workers need none.")
        await app(scope, receive, send)

    def close(self) -> None:
        """Let go of all journals."""
        for app in self._journals.values():
            app.state.index.close()

    def samples(self, request: Request) -> Response:
        """Samples, the latest first, filtered by outcome, kind of question and iteration."""
        training = self._find(request)
        stage = self._stage(request, training)
        filters = _filters(request.query_params)
        after = _AFTER.fullmatch(request.query_params.get("after", ""))
        cursor = None if after is None else (after[1], int(after[2]))
        found, is_more = stage.samples.select(filters, cursor, _PAGE)
        last = f"{found[-1].batch.name}:{found[-1].index}" if found else ""
        return page(
            request,
            "training_samples.html",
            training=training,
            stage=stage,
            filters=filters,
            samples=found,
            excerpt=Excerpts(2 * len(found)),
            newer=f"?{_query(filters)}" if cursor else "",
            older=f"?{_query(filters, after=last)}" if is_more else "",
            outcomes=OUTCOMES,
            kinds=_kinds(stage.samples, filters.kind),
            splits=SPLITS,
            total=len(stage.samples.batches()),
        )

    def sample(self, request: Request) -> Response:
        """One sample: its completion, the steps of its workflow with their replies, and its outcome."""
        training = self._find(request)
        stage = self._stage(request, training)
        batch = stage.samples.batch(request.path_params["batch"])
        kept = _sample(stage.samples, batch, request.path_params["index"])
        if batch is None or kept is None:
            raise HTTPException(404, f"The stage {stage.name} has kept no such sample.")
        journal = self._journal(training, request.app.state.viewer)
        problems = tuple(kept.problems) if kept.outcome == "invalid" else ()
        return page(
            request,
            "training_sample.html",
            training=training,
            stage=stage,
            sample=kept,
            split=SPLITS[batch.split],
            runs=[run for run in kept.runs if journal is not None and journal.state.index.find(run) is not None],
            written={"lines": lines_of(Completion(kept.completion, "invalid" if problems else "valid", problems))},
            excerpt=Excerpts(4 + len(kept.replies)),
            workers=training.workers,
        )

    def _journal(self, training: TrainingFolder, viewer: Viewer) -> Starlette | None:
        """The pages of a training's journal; None: it has none."""
        if training.id not in self._journals and training.journal.is_file():
            nav = [(f"Runs of {training.name}", "/"), ("Training", "/..")]
            self._journals[training.id] = viewer.runs_in(RunIndex(training.journal), nav)
        return self._journals.get(training.id)

    def _draw(self, training: TrainingFolder, stage: Stage, metric: Metric) -> str:
        at, values = stage.trained(metric.key)
        held_out = [(step, value, _error(metric, value, entry)) for step, value, entry in stage.held_out(metric.key)]
        drawn_from = (at, values, held_out)
        place = (training.id, stage.name, metric.name)
        with self._drawing:
            kept = self._drawn.get(place)
            if kept is None or kept[0] != drawn_from:
                began = time.monotonic()
                svg = curve_svg(
                    metric.label,
                    running_means(at, values),
                    Means(*(list(column) for column in zip(*held_out, strict=True))) if held_out else Means((), (), ()),
                    is_share=metric.is_share,
                    alone=training.single_workers() if metric.name == "accuracy" else None,
                    workers=training.workers,
                    simulated=training.is_simulated,
                )
                training.took(time.monotonic() - began)
                kept = self._drawn[place] = (drawn_from, svg)
            return kept[1]

    def _trainings(self) -> list[TrainingFolder]:
        found = find_folders(self._folders, is_training)
        for path in found:
            self._known.setdefault(path, TrainingFolder(path))
        return [self._known[path] for path in found]

    def _find(self, request: Request) -> TrainingFolder:
        name = request.path_params["id"]
        known = next((each for each in self._known.values() if each.id == name and is_training(each.path)), None)
        found = known or next((each for each in self._trainings() if each.id == name), None)
        if found is None:
            raise HTTPException(404, f"No folder of a training {name!r} was found.")
        return found

    def _stage(self, request: Request, training: TrainingFolder) -> Stage:
        stage = training.stage(request.path_params["stage"])
        if stage is None:
            raise HTTPException(404, f"The training has no stage {request.path_params['stage']!r}.")
        return stage


def _has(stage: Stage, metric: Metric) -> bool:
    """Whether a metric is shown. A loss says something only where texts are learned: GRPO's is nearly 0 by design."""
    values = [*stage.trained(metric.key)[1], *(value for _, value, _ in stage.held_out(metric.key))]
    return any(values) and (metric.key != "loss" or stage.name == "sft")


def _pictures(stage: Stage) -> list[Picture]:
    return [_picture(stage, metric) for metric in METRICS if _has(stage, metric)]


def _picture(stage: Stage, metric: Metric) -> Picture:
    values, held_out = stage.trained(metric.key)[1], stage.held_out(metric.key)
    parts = [f"{metric.label} over {stage.step} iterations"]
    parts += [f"from {values[0]:.3g} to {values[-1]:.3g}"] if values else []
    parts += [f"{held_out[-1][1]:.3g} on held-out questions"] if held_out else []
    version = urlencode({"v": f"{len(values)}.{len(held_out)}.{stage.step}"})
    return Picture(metric, f"{stage.name}/curves/{metric.name}.svg?{version}", ", ".join(parts))


def _error(metric: Metric, value: float, entry: Mapping[str, Any]) -> float | None:
    """The standard error of an evaluation, which asks each question once; None: not known."""
    seconds, rate = number_of(entry, f"{HELD_OUT}runtime"), number_of(entry, f"{HELD_OUT}samples_per_second")
    count = round(seconds * rate) if seconds and rate else 0
    if count < 2:
        return None
    if metric.is_share:
        return sqrt(max(value * (1 - value), 0.0) / count)
    deviation = number_of(entry, f"{HELD_OUT}rewards/workflow_reward/std") if metric.name == "reward" else None
    return None if deviation is None else deviation / sqrt(count)


def _held_out(stage: Stage) -> Mean | None:
    """The accuracy of the latest evaluation."""
    found = stage.held_out("accuracy")
    accuracy = next(metric for metric in METRICS if metric.name == "accuracy")
    return Mean(found[-1][1], _error(accuracy, *found[-1][1:])) if found else None


def _tables(samples: SampleFolder) -> list[tuple[str, list[Any]]]:
    """The latest iterations and the latest evaluation, by kind of question; with their titles."""
    batches = samples.batches()
    trained = [batch for batch in batches if batch.split == "step"][:_RECENT]
    tested = [batch for batch in batches if batch.split == "eval"][:1]
    found = []
    if trained:
        title = f"iteration {trained[0].step}" if len(trained) == 1 else f"the last {len(trained)} iterations"
        found.append((f"Training questions, {title}", _rows(samples, trained)))
    if tested:
        found.append((f"Held-out questions, evaluation at iteration {tested[0].step}", _rows(samples, tested)))
    return found


def _rows(samples: SampleFolder, batches: Sequence[Batch]) -> list[Any]:
    return by_kind(kept for batch in batches for kept in samples.read(batch))


def _sample(samples: SampleFolder, batch: Batch | None, index: int) -> Kept | None:
    if batch is None:
        return None
    return next((kept for kept in samples.read(batch) if kept.index == index), None)


def _kinds(samples: SampleFolder, chosen: str) -> list[str]:
    """The kinds of questions to choose from: those of the latest batches, which ask about all of them."""
    found = {head.kind for batch in samples.batches()[:_RECENT] for head in samples.heads(batch)}
    return sorted(filter(None, {*sorted(found)[:_MOST_KINDS], chosen}))


def _filters(query: QueryParams) -> Filters:
    """The filters that an address names.

    Raises:
        UsageError: a value cannot be used.
    """
    given = {name: query.get(name, "").strip() for name in ("outcome", "kind", "questions", "iteration")}
    for name, known in (("outcome", OUTCOMES), ("questions", tuple(SPLITS))):
        if given[name] and given[name] not in known:
            raise UsageError(f"{name} must be one of {', '.join(known)} (got {given[name]!r})")
    if given["iteration"] and not _NUMBER.fullmatch(given["iteration"]):
        raise UsageError(f"iteration must be a number from 0 (got {given['iteration']!r})")
    iteration = int(given["iteration"]) if given["iteration"] else None
    return Filters(outcome=given["outcome"], kind=given["kind"], questions=given["questions"], iteration=iteration)


def _query(filters: Filters, **more: str) -> str:
    iteration = "" if filters.iteration is None else str(filters.iteration)
    values = {"outcome": filters.outcome, "kind": filters.kind, "questions": filters.questions, "iteration": iteration}
    return urlencode({name: value for name, value in {**values, **more}.items() if value})
