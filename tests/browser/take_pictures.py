"""Pictures of the playground for docs/howto/view.md: desktop and phone, light and dark.

Run it with `WFDSL_BROWSER=chromium python -m tests.browser.take_pictures`, and look at them.
"""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from .conftest import BROWSER, FLAGS, Viewer, open_context

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
POOL = "\n".join(
    [
        '[pool]\nname = "team"',
        *(
            f'[[pool.workers]]\nname = "{name}"\nprovider = "scripted"\nmax_tokens = 500\n'
            f'prices = {{ input = {price}, output = {4 * price} }}\noptions = {{ replies = ["…"] }}'
            for name, price in (("planner", 1), ("solver", 2), ("checker", 5))
        ),
    ]
)
TEXT = """wfdsl 1
param tries = 3

step plan by planner: "Plan how to solve it."
step try by solver copies {tries} sees plan: "Follow the plan."
step check by checker sees try: "Compare the results, and give the final answer."
"""
WRONG = TEXT.replace("sees try:", "sees tri:").replace("by solver", "by solvr")
DESKTOP, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 812}


def take(chromium: Any, viewer: Viewer, name: str, text: str, top: str = "header", **options: Any) -> None:
    """Take one picture with the text typed in, from an element downwards."""
    context = open_context(chromium, viewer, **options)
    page = context.new_page()
    page.goto(f"{viewer.root}/playground")
    page.get_by_label("Text").fill(text)
    if text == TEXT:
        page.get_by_label("Question").fill("A train drives 60 km per hour for 3 hours. How far?")
        page.get_by_role("button", name="Run for at most").wait_for()
        page.get_by_text("5 steps", exact=True).wait_for()
    else:
        page.locator(".problem").first.wait_for()
    page.evaluate("document.activeElement.blur()")
    page.evaluate("at => scrollTo(0, document.querySelector(at)?.offsetTop ?? 0)", top)
    with Image.open(BytesIO(page.screenshot())) as picture:
        picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
            PICTURES / f"view-{name}.png", optimize=True
        )
    context.close()


def main() -> None:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        (home / "pool.toml").write_text(POOL)
        viewer = Viewer(home, "--pool", str(home / "pool.toml"))
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        take(browser, viewer, "playground", TEXT, viewport=DESKTOP)
        take(browser, viewer, "playground-phone-dark", WRONG, "textarea", viewport=PHONE, color_scheme="dark")
        browser.close()
        viewer.stop()


if __name__ == "__main__":
    main()
