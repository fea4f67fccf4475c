"""Values with a picture, which notebooks show. What draws a value is imported by its name when a picture is asked for.

Values are below what draws them: so `wfdsl check` needs no pictures, and a picture of a workflow no runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar


class Drawn:
    """A value with a picture."""

    __slots__ = ()
    _panels: ClassVar = "wfdsl.render.model"
    """The module whose `panel_of_value` draws it."""
    _pages: ClassVar = "wfdsl.render.html"
    """The module whose `page_of_value` makes a page of it."""

    def _to_draw(self) -> Any:
        """What is drawn instead of it."""
        return self

    def _panel(self, options: Any) -> Any:
        return import_module(self._panels).panel_of_value(self._to_draw(), options)

    def _page(self, options: Any) -> Any:
        return import_module(self._pages).page_of_value(self._to_draw(), options)

    def _repr_svg_(self) -> str | None:
        drawn: str = import_module("wfdsl.render.pictures").to_svg(self)
        return drawn


class DrawnRun(Drawn):
    """A value with a picture and with texts to read."""

    __slots__ = ()
    _panels = "wfdsl.render.runs"
    _pages = "wfdsl.render.run_page"

    def _repr_html_(self) -> str | None:
        drawn: str = import_module("wfdsl.render.html").fragment_of(self._page({}))
        return drawn
