"""Pictures of workflows and runs in every format: terminal, SVG, PNG, PDF, HTML and Mermaid."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Unpack

from wfdsl.errors import UsageError
from wfdsl.installation import install_command
from wfdsl.render.model import Options, Panel
from wfdsl.render.notebook import Drawn

if TYPE_CHECKING:  # start-up time: each format imports what it needs
    from wfdsl.render.terminal import TerminalDrawing


def to_svg(value: Drawn, **options: Unpack[Options]) -> str:
    """Draw a workflow, a checked text, a run or a solution as a complete SVG document.

    `names`, `title`, `description`, `workers` (index to name), `status` and `conductors` say what a workflow itself
    may not hold; runs and solutions know them, and so does a workflow that was loaded from a file.
    `opened` draws by themselves the copies of the steps with these indices.

    Raises:
        ValueError: `names` has not one name for each step.
        UsageError: a checked text holds no workflow, or the value is something else, such as a path.
    """
    from wfdsl.render.svg import svg_of  # noqa: PLC0415  (start-up time)

    return svg_of(picture_of(value, **options))


def to_png(value: Drawn, **options: Unpack[Options]) -> bytes:
    """Draw as a PNG image, two pixels for each of the SVG. Arguments and errors as for `to_svg`.

    Raises:
        UsageError: resvg-py (the extra `view`) is not installed, or the machine has no font.
    """
    try:
        import resvg_py  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise UsageError(f"a PNG needs resvg-py: {install_command('view')}") from error
    drawn = to_svg(value, **options)
    image = bytes(resvg_py.svg_to_bytes(svg_string=drawn, zoom=2))
    if image == bytes(resvg_py.svg_to_bytes(svg_string=re.sub("<text.*?</text>", "", drawn), zoom=2)):
        raise UsageError("a PNG needs a font, and none was found: install one (apt install fonts-dejavu-core)")
    return image


def to_pdf(value: Drawn, **options: Unpack[Options]) -> bytes:
    """Draw as a PDF page of the picture's size. Arguments and errors as for `to_svg`.

    Raises:
        UsageError: CairoSVG, or the system library cairo that it needs, is not installed.
    """
    try:
        import cairosvg  # noqa: PLC0415  (not a requirement: it needs a system library)
    except (ImportError, OSError) as error:
        raise UsageError(
            f"a PDF needs CairoSVG and the system library cairo (pip install cairosvg; apt install libcairo2): {error}"
        ) from error
    drawn = to_svg(value, **options).replace(".wfdsl{max-width:100%;height:auto}", "")  # CairoSVG takes auto for 0
    return bytes(cairosvg.svg2pdf(bytestring=drawn.encode()))


def to_mermaid(value: Drawn, **options: Unpack[Options]) -> str:
    """Write a picture as a Mermaid flowchart, for Markdown pages. Arguments and errors as for `to_svg`."""
    from wfdsl.render.mermaid import mermaid_of  # noqa: PLC0415  (start-up time)

    return mermaid_of(picture_of(value, **options))


def to_terminal(value: Drawn, **options: Unpack[Options]) -> TerminalDrawing:
    """Draw for a terminal: print it for plain text, or with a rich console for colour.

    Arguments and errors as for `to_svg`.
    """
    from wfdsl.render.terminal import TerminalDrawing  # noqa: PLC0415  (start-up time)

    return TerminalDrawing(picture_of(value, **options))


def to_html(value: Drawn, **options: Unpack[Options]) -> str:
    """Write a workflow, a checked text, a run or a solution as one HTML page that needs nothing else.

    The page of a run has the picture, and each step with its messages, reply, tokens, cost and time; all text of
    workers is shown as text. Arguments and errors as for `to_svg`.
    """
    from wfdsl.render.html import html_of  # noqa: PLC0415  (start-up: Markdown and Pygments)

    return html_of(_drawn(value)._page(options))


def picture_of(value: Drawn, **options: Unpack[Options]) -> Panel:
    """What every format shows. Arguments and errors as for `to_svg`."""
    found = _drawn(value)._panel(options)
    assert isinstance(found, Panel)  # each value's own module makes one
    return found


def _drawn(value: Any) -> Drawn:
    if not isinstance(value, Drawn):
        wanted = "a Workflow, a Checked, a Run or a Solution can be drawn"
        raise UsageError(f"{wanted} (got {str(value)[:60]!r}): write wfdsl.load(FILE) or wfdsl.parse(TEXT)")
    return value
