"""Small workflows drawn by a pen: for fuzzing, where hypothesis would be too slow."""

from __future__ import annotations

from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.testing.pen import Pen

WORDS = (
    "Plan it.", "Solve the problem; show your work.", "Don't guess.", 'Say "yes" or "no".', "Use \\d+ and C:\\new.",
    "Line one.\nLine two.\r\n\ttabbed", "model_id = [0]", "</think>", "# no comment", "漢字と😀", "l’été “fini”",
    "a/b [x] {y}", "\ufffd?", "'''\"\"\"", "all", "x",
)  # fmt: skip


def draw_workflow(pen: Pen, *, pool_size: int = 7, max_steps: int = 5) -> Workflow:
    """A workflow of up to `max_steps` steps."""
    count = pen.number(1, max_steps)
    return Workflow(tuple(_step(pen, index, pool_size) for index in range(count)))


def _step(pen: Pen, index: int, pool_size: int) -> Step:
    subtask = " ".join([pen.choose(WORDS) for _ in range(pen.number(1, 2))])
    return Step(pen.number(0, pool_size - 1), subtask, _access(pen, index))


def _access(pen: Pen, index: int) -> Access:
    if pen.seldom(4):
        return ALL
    return tuple(earlier for earlier in range(index) if pen.seldom(2))
