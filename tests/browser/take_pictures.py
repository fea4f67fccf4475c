"""Pictures of the pages for README and docs: desktop and phone, light and dark.

Run it with `WFDSL_BROWSER=chromium python -m tests.browser.take_pictures`, and look at them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

import wfdsl
from tests.viewer.conftest import KEEP, conductor_of
from wfdsl.protocols import Call, Reply, Usage, WorkerFailure
from wfdsl.workers.entry import Prices

from .conftest import BROWSER, FLAGS, Viewer, open_context

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
PLAYGROUND = """wfdsl 1
param tries = 3

step plan by planner: "Plan how to solve it."
step try by solver copies {tries} sees plan: "Follow the plan."
step check by checker sees try: "Compare the results, and give the final answer."
"""
WRITTEN = """I plan first, let two workers solve it on their own, and compare.
model_id = [0, 1, 2, 0]
subtasks = ["Plan how to work out the time.", "Follow the plan.", "Solve it your own way.", "Compare both."]
access_list = [[], [0], [], [1, 2]]
"""
REPLIES = {
    "Plan how to work out the time.": "1. Count the *whole hours* from 9:40.\n2. Count the minutes that are left.",
    "Follow the plan.": "| from | to | time |\n|---|---|--:|\n| 9:40 | 12:40 | 3 h |\n| 12:40 | 13:05 | 25 min |\n\n"
    "So $3 \\cdot 60 + 25 = 205$ minutes.",
    "Solve it your own way.": "```python\n(13 * 60 + 5) - (9 * 60 + 40)  # 205\n```\n205 minutes are **3 h 25 min**.",
    "Compare both.": "Both agree: **3 hours and 25 minutes**.",
}
DESKTOP, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 812}


def worker(name: str, seconds: float, failures: int = 0) -> Any:
    left = [failures]

    async def answer(call: Call) -> Reply:
        await asyncio.sleep(seconds)
        if left[0]:
            left[0] -= 1
            raise WorkerFailure("the connection was closed", retryable=True)
        return Reply(REPLIES[call.messages[-1]["content"].split("\n")[-1]], usage=Usage(240, 90))

    prices = Prices(input=1, output=4)
    return wfdsl.WorkerEntry(name=name, provider="function", prices=prices, max_tokens=500, retries=2), answer


def conducted(journal: Path) -> str:
    """The id of a Conductor's run: it is asked again once, and a call of a worker fails."""
    pool = wfdsl.Pool.from_workers([worker("planner", 0.7), worker("quick", 0.9, 1), worker("careful", 1.6)])
    conductor = conductor_of(WRITTEN.replace("[1, 2]", "[1, 4]"), WRITTEN, KEEP)
    return conductor.solve_sync("A train leaves at 9:40 and arrives at 13:05. How long?", pool, journal=journal).run.id


def main() -> None:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        run = conducted(home / "journal.db")
        names = "".join(
            f'[[pool.workers]]\nname = "{name}"\nprovider = "scripted"\nmax_tokens = 500\n'
            f'prices = {{ input = 1, output = 4 }}\noptions = {{ replies = ["…"] }}\n'
            for name in ("planner", "solver", "checker")
        )
        (home / "pool.toml").write_text(f'[pool]\nname = "team"\n{names}')
        debate = PICTURES.parent / "examples" / "debate.wf"
        options = ["--policy", "workers", "--policy", str(debate), "--tasks", "gym/seven", "--pool", "gym/seven"]
        command = [sys.executable, "-m", "wfdsl", "eval", *options, "--limit", "20", "--out", "first", "--quiet"]
        subprocess.run(command, cwd=home, env={"WFDSL_HOME": str(home)}, check=True)
        viewer = Viewer(home, "--pool", "pool.toml")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)

            def take(name: str, path: str, at: str = "header", text: str = "", **options: Any) -> None:
                """Take one picture from an element downwards, of the playground with a text typed in."""
                context = open_context(browser, viewer, **options)
                page = context.new_page()
                page.goto(viewer.root + path)
                if text:
                    page.get_by_label("Text").fill(text)
                    page.get_by_label("Question").fill("A train drives 60 km per hour for 3 hours. How far?")
                    page.locator(".problem, .primary").first.wait_for()
                page.wait_for_timeout(1500)
                page.evaluate("document.activeElement.blur()")
                page.evaluate("at => scrollTo(0, document.querySelector(at)?.offsetTop ?? 0)", at)
                with Image.open(BytesIO(page.screenshot())) as picture:
                    few = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
                    few.save(PICTURES / f"view-{name}.png", optimize=True)
                context.close()

            dark = {"color_scheme": "dark"}
            take("conversation", f"/runs/{run}#step=0.0.1", ".bar-of-views", viewport=DESKTOP)
            take("graph", f"/runs/{run}?view=graph#step=0.0.1", viewport=DESKTOP, **dark)
            take("time-phone", f"/runs/{run}?view=time", viewport=PHONE, **dark)
            take("playground", "/playground", text=PLAYGROUND, viewport=DESKTOP)
            wrong = PLAYGROUND.replace("sees try:", "sees tri:").replace("by solver", "by solvr")
            take("playground-phone-dark", "/playground", "textarea", wrong, viewport=PHONE, **dark)
            evaluation = next(home.glob("first/manifest.json")).read_text().partition('"id": "')[2].partition('"')[0]
            take("evaluation", f"/evaluations/{evaluation}", viewport=DESKTOP)
            browser.close()
        viewer.stop()


if __name__ == "__main__":
    main()
