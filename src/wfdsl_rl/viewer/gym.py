"""Pages of the gym: its presets with their workers, families of questions, and the best workflows that are known."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from wfdsl.api import dumps
from wfdsl.errors import UsageError
from wfdsl.language.workflow import Workflow
from wfdsl.pictures import picture_of
from wfdsl.render.svg import svg_of
from wfdsl.viewer.app import Pages
from wfdsl.viewer.page import page
from wfdsl_rl.gym.world.families import draw, summary_of
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.optimum import Found, Optimum, optimum, workflow_of
from wfdsl_rl.gym.world.presets import PRESETS, Preset
from wfdsl_rl.gym.world.profiles import DOMAINS

_PREFIX: Final = "gym/"
_EXAMPLES: Final = 3
"""Questions of a family that are shown."""
_PRICE: Final = 0.2
"""In points: a step that is worth less is not counted as needed. As in the documentation of the gym."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of questions."""

    name: str
    domain: str
    summary: str
    best: Found | None
    """The best workflow that is known, at the price of a step; None: none was searched for."""
    accuracies: Sequence[float]
    """Of the best workflows of 1, 2 ... steps."""


def pages(_: Sequence[Path]) -> Pages:
    """The pages of the gym; they are about the package itself, and need no folder."""
    return Pages(
        title="Gym",
        path="/gym",
        routes=[
            Route("/gym", show_presets),
            Route("/gym/{name}", show_preset),
            Route("/gym/{name}/{family}", show_family),
        ],
        templates=Path(__file__).parent / "templates",
    )


def show_presets(request: Request) -> Response:
    """All presets."""
    return page(request, "gym.html", presets=list(PRESETS.values()), short=_short, known=_optimum_of)


def show_preset(request: Request) -> Response:
    """One preset: its workers and its families of questions."""
    preset, known = _preset(request)
    workers = [(index, preset.profile(index)) for index in range(len(preset.members))]
    lengths = max((len(found) for found in known.families.values()), default=0) if known else 0
    return page(
        request,
        "gym_preset.html",
        preset=preset,
        short=_short(preset),
        workers=workers,
        accuracies=[[preset.accuracy(preset.members[at], domain) for domain in DOMAINS] for at, _ in workers],
        domains=DOMAINS,
        families=[_family(preset, known, name) for domain in DOMAINS for name in preset.ease[domain]],
        known=known,
        lengths=lengths,
        mean=known.accuracy() if known else None,
        constant=_best(request, preset, known.constant(_PRICE)) if known else None,
        price=_PRICE,
    )


def show_family(request: Request) -> Response:
    """One family: examples of its questions, and its best workflows: a longer one is shown if it is better."""
    preset, known = _preset(request)
    name = request.path_params["family"]
    if not any(name in families for families in preset.ease.values()):
        raise HTTPException(404, f"The preset {preset.name} has no family of questions {name!r}.")
    found = known.families.get(name, {}) if known else {}
    return page(
        request,
        "gym_family.html",
        preset=preset,
        short=_short(preset),
        family=_family(preset, known, name),
        examples=_examples(preset, name),
        best=[_best(request, preset, one) for one in dict.fromkeys(one for _, one in sorted(found.items()))],
        workers=[preset.profile(index).name for index in range(len(preset.members))],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """A workflow with its accuracy."""

    found: Found
    workflow: Workflow
    svg: Markup
    playground: str
    """The address at which it can be changed and run."""


def _best(request: Request, preset: Preset, found: Found) -> Best:
    workflow = workflow_of(found.team)
    text = urlsafe_b64encode(dumps(workflow, "completion").encode()).decode().rstrip("=")
    address = f"{request.scope['root_path']}/playground#completion={text}"
    workers = {index: preset.profile(index).name for index in range(len(preset.members))}
    svg = svg_of(replace(picture_of(workflow, workers=workers), title="", notes=()))
    return Best(found=found, workflow=workflow, svg=Markup(svg), playground=address)


def _preset(request: Request) -> tuple[Preset, Optimum | None]:
    preset = PRESETS.get(_PREFIX + request.path_params["name"])
    if preset is None:
        names = ", ".join(_short(each) for each in PRESETS.values())
        raise HTTPException(404, f"The gym has no preset {request.path_params['name']!r}. It has {names}.")
    return preset, _optimum_of(preset)


def _optimum_of(preset: Preset) -> Optimum | None:
    try:
        return optimum(preset.name)
    except UsageError:
        return None


def _short(preset: Preset) -> str:
    return preset.name.removeprefix(_PREFIX)


def _family(preset: Preset, known: Optimum | None, name: str) -> Family:
    found = known.families.get(name, {}) if known else {}
    return Family(
        name=name,
        domain=preset.domain_of(name),
        summary=summary_of(name),
        best=known.per_family(_PRICE)[name] if known and found else None,
        accuracies=[one.accuracy for _, one in sorted(found.items())],
    )


def _examples(preset: Preset, family: str) -> list[Item]:
    """Questions of the training series, from the easiest wordings on as they are drawn."""
    return [draw(preset.domain_of(family), 0, at, families=(family,)) for at in range(_EXAMPLES)]
