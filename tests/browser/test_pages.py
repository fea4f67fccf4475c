"""The pages in a real browser: list, filters, views, selection, live runs, redo, comparison, export, no scripts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import wfdsl
from tests.server.provider import Provider
from tests.viewer.conftest import NESTED, POOL, TWO, nesting_pool, plan, solve
from tests.viewer.test_evaluations import evaluated

from .conftest import Viewer, Watched, in_thread, open_context

COPIES: list[Any] = [[] for _ in range(120)]


def ask(home: Path, question: str = "What is 2+2?", workflow: wfdsl.Workflow = TWO, **options: Any) -> wfdsl.Run:
    pool = options.pop("pool", None) or wfdsl.Pool.from_functions([plan, solve])
    return in_thread(lambda: asyncio.run(wfdsl.run(workflow, question, pool, journal=home / "journal.db", **options)))


def test_typing_into_the_filter_narrows_the_list_without_losing_a_letter(home: Path, watched: Watched) -> None:
    for number in range(12):
        ask(home, f"What is {number}+{number}?")
    page = watched.go("/")
    assert page.locator("tbody tr").count() == 12

    page.get_by_label("Text").press_sequentially("is 11+11", delay=40)

    page.locator("tbody tr").nth(1).wait_for(state="detached")
    assert page.locator("tbody tr").count() == 1
    assert page.get_by_label("Text").input_value() == "is 11+11"
    assert page.evaluate("document.activeElement.name") == "text"
    assert "text=is+11" in page.url
    page.get_by_label("Status").select_option("failed")
    page.get_by_text("No run fits these filters.").wait_for()


def test_keys_walk_through_the_runs_and_two_ticked_ones_are_compared(home: Path, watched: Watched) -> None:
    async def other(messages: list[dict[str, str]]) -> str:
        return "The answer is 5."

    runs = [ask(home, f"What is {number}+{number}?") for number in range(2)]
    runs.append(ask(home, "What is 2+2?", pool=wfdsl.Pool.from_functions([plan, other])))
    page = watched.go("/")

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "What is 1+1?"
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "text"
    page.get_by_label(f"Compare {runs[0].id}").check()
    page.get_by_label(f"Compare {runs[2].id}").check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?run=*&run=*")
    assert {page.locator(f"pre {kind}").first.inner_text() for kind in ("del", "ins")} == {"4", "5"}


def test_an_evaluation_is_one_row_and_its_figures_lead_to_runs(home: Path, chromium: Any, viewer: Viewer) -> None:
    in_thread(lambda: evaluated(home))
    context = open_context(chromium, viewer)
    watched = Watched(context, viewer.root)
    page = watched.go("/")
    page.get_by_role("link", name="Evaluation of 8 runs").click()
    page.get_by_role("link", name="evaluation e1").click()
    page.get_by_role("region", name="Accuracy").locator("td a").first.click()
    page.get_by_role("region", name="Trials").locator("a[href*='/runs/']").first.click()
    page.get_by_role("heading", name="Answer").wait_for()
    context.close()
    assert watched.faults == []


def test_a_chosen_step_stays_chosen_from_view_to_view(home: Path, watched: Watched) -> None:
    run = ask(home, names=("plan", "solve"))
    page = watched.go("/")
    page.get_by_role("link", name="What is 2+2?").click()
    page.get_by_role("heading", name="Question").wait_for()

    page.locator(".view").get_by_role("link", name="solve", exact=True).first.click()
    panel = page.get_by_label("The selected step")
    panel.get_by_role("heading", name="What this worker saw").wait_for()
    assert page.url.endswith(f"/runs/{run.id}#step=1")
    for view in ("Graph", "Time", "Conversation"):
        page.get_by_role("link", name=view, exact=True).click()
        page.locator(f'.views [aria-current="page"]:text-is("{view}")').wait_for()
        assert page.url.endswith("#step=1")
        page.locator('.chosen[data-steps="1"]').wait_for()
        panel.get_by_text("the reply of plan").wait_for()
    panel.get_by_role("link", name="plan").first.click()
    page.locator('.chosen[data-steps="0"]').wait_for()
    page.keyboard.press("Escape")
    panel.wait_for(state="hidden")
    assert page.evaluate("document.activeElement.closest('[data-steps]').dataset.steps") == "0"


def test_a_link_to_a_step_inside_a_step_opens_what_is_around_it(home: Path, watched: Watched) -> None:
    run = ask(home, workflow=NESTED, pool=nesting_pool())

    for view in ("conversation", "graph", "time"):
        page = watched.go(f"/runs/{run.id}?view={view}#step=1.0.1")
        page.locator('.chosen[data-steps~="1.0.1"]').wait_for()
        page.get_by_label("The selected step").get_by_text("The answer is 4.").wait_for()


def test_a_graph_opens_what_ran_inside_a_step_one_stack_of_copies_and_large_workflows(
    home: Path, watched: Watched
) -> None:
    nested = ask(home, workflow=NESTED, pool=nesting_pool())
    page = watched.go(f"/runs/{nested.id}?view=graph")
    inside = page.locator('a[data-steps="1.0.1"]')
    page.get_by_role("link", name="Close").click()
    inside.wait_for(state="detached")
    page.get_by_role("link", name="Open").click()
    inside.click()
    page.get_by_label("The selected step").get_by_text("The answer is 4.").wait_for()

    copies = ask(home, workflow=wfdsl.Workflow.from_lists([0] * 120 + [1], ["Try."] * 120 + ["End."], [*COPIES, "all"]))
    page = watched.go(f"/runs/{copies.id}?view=graph")
    assert page.locator("figure a[data-steps]").count() == 2
    page.get_by_role("link", name="120 copies").click()
    page.get_by_text("121 nodes").wait_for()
    assert page.locator("figure svg").count() == 0
    page.get_by_role("link", name="Draw them").click()
    page.locator('figure a[data-steps="119"]').wait_for()
    page.get_by_role("link", name="Stack the copies").click()
    page.locator('figure a[data-steps$=" 119"]').wait_for()
    assert page.locator("figure a[data-steps]").count() == 2


def test_a_run_in_progress_is_followed_until_it_is_done(home: Path, watched: Watched) -> None:
    released = threading.Event()

    async def waiting(messages: list[dict[str, str]]) -> str:
        await asyncio.to_thread(released.wait, 60)
        return "It is 4."

    pool = wfdsl.Pool.from_functions([plan, waiting])
    thread = threading.Thread(target=lambda: ask(home, "A slow one?", pool=pool))
    page = watched.go("/")
    page.get_by_text("There are no runs yet").wait_for()
    thread.start()
    page.get_by_role("link", name="A slow one?").wait_for()
    page.locator(".state.running").wait_for()
    page.get_by_role("link", name="A slow one?").click()
    page.locator(".view").get_by_text("First add, then check.").wait_for()
    page.locator(".status .state.running").wait_for()
    page.locator('[data-step="0"]').first.focus()

    released.set()

    page.locator(".status .state.done").wait_for()
    page.locator(".answer").get_by_text("It is 4.").wait_for()
    assert page.evaluate("document.activeElement.dataset.step") == "0"
    thread.join()


SLOW = """
import asyncio, sys, wfdsl
async def plan(messages): return "planned"
async def forever(messages):
    print("asked", flush=True)
    await asyncio.sleep(600)
pool = wfdsl.Pool.from_functions([plan, forever])
asyncio.run(wfdsl.run(wfdsl.Workflow.from_lists([0, 1], ["a", "b"], [[], [0]]), "Killed?", pool, journal=sys.argv[1]))
"""


def test_a_run_whose_process_is_killed_is_told_from_one_that_runs(home: Path, watched: Watched) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(home / "journal.db")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    page = watched.go("/")
    page.locator(".state.running").wait_for()

    process.kill()
    process.wait()
    process.stdout.close()

    page.locator(".state.interrupted").wait_for()
    page.get_by_role("link", name="Killed?").click()
    page.get_by_text("its process ended before the run did").wait_for()


def test_a_step_is_asked_again_at_the_price_that_is_shown(home: Path, watched: Watched) -> None:
    pool = home / "pool.toml"
    pool.write_text(POOL)
    workflow = wfdsl.Workflow.from_lists([0, 0], ["Plan it.", "Follow the plan."], [[], [0]])
    run = ask(home, "How far?", workflow, pool=wfdsl.Pool.load(str(pool)), origin={"pool": str(pool)})
    page = watched.go(f"/runs/{run.id}#step=1")
    page.get_by_role("link", name="Ask again").click()
    button = page.get_by_role("button", name="Ask again for at most")
    before = button.inner_text()

    page.get_by_label("Worker").select_option(label="careful")
    page.wait_for_function("before => document.querySelector('.primary').innerText !== before", arg=before)
    page.get_by_label("Subtask").fill("Be careful.")
    button.click()  # it waits until the price is that of the new subtask

    page.locator(".status .state.done").wait_for()
    page.locator(".answer").get_by_text("It is 180 km.").wait_for()
    page.get_by_role("link", name="compare them").click()
    page.get_by_text("differs in: worker, subtask, reply").wait_for()


def test_an_exported_page_needs_nothing_else(home: Path, watched: Watched, chromium: Any, tmp_path: Path) -> None:
    run = ask(home, "What is <b>2+2</b>?")
    page = watched.go(f"/runs/{run.id}")
    with page.expect_download() as download:
        page.get_by_role("link", name="HTML page").click()
    file = tmp_path / "run.html"
    download.value.save_as(file)
    context = chromium.new_context(offline=True)
    alone = Watched(context, "file:")

    alone.page.goto(file.as_uri())

    assert alone.page.get_by_text("The answer is 4.").first.is_visible()
    assert alone.page.get_by_text("What is <b>2+2</b>?").first.is_visible()
    context.close()
    assert alone.faults == []


def test_a_run_is_copied_as_markdown_json_and_workflow_file(home: Path, watched: Watched) -> None:
    run = ask(home)
    page = watched.go(f"/runs/{run.id}")

    for name, part in (("Markdown", "## Answer"), ("JSON", '"format": "wfdsl-run"'), (".wf", "step ")):
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_text("copied").wait_for()
        assert part in page.evaluate("navigator.clipboard.readText()")
        page.get_by_text("copied").wait_for(state="detached")


def test_everything_static_works_without_javascript(home: Path, chromium: Any, viewer: Viewer) -> None:
    run = ask(home)
    context = open_context(chromium, viewer, java_script_enabled=False)
    page = context.new_page()
    page.goto(viewer.root + "/?status=done")
    page.get_by_label("Text").fill("2+2")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="What is 2+2?").click()
    page.get_by_role("link", name="Graph", exact=True).click()
    page.locator('svg a[data-steps="1"]').click()
    assert page.url.endswith(f"/runs/{run.id}/steps/1")
    page.get_by_role("heading", name="What this worker saw").wait_for()
    context.close()


def test_the_pages_are_used_with_the_keyboard_alone(home: Path, watched: Watched) -> None:
    run = ask(home, names=("plan", "solve"))
    page = watched.go(f"/runs/{run.id}?view=graph")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")

    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.steps") == "1":
            break
    page.keyboard.press("Enter")

    page.get_by_label("The selected step").get_by_text("the reply of plan").wait_for()


def test_the_playground_checks_and_draws_what_is_typed_and_its_address_holds_it(watched: Watched) -> None:
    page = watched.go("/playground")
    text = page.get_by_label("Text")
    assert page.locator("figure svg").count() == 1

    text.fill('wfdsl 1\nstep plan by 0: "Plan ü."\nstep solve by 0 sees pla: "Solve."')
    page.locator(".problem").wait_for()
    assert page.locator("figure svg").count() == 0
    text.press("ArrowLeft")
    text.fill('wfdsl 1\nparam n = 3\nstep plan by 0 copies {n}: "Plan ü."\nstep solve by 0 sees plan: "Solve."')
    page.get_by_text("4 steps", exact=True).wait_for()
    page.get_by_label("n", exact=True).press_sequentially("12", delay=30)
    page.get_by_text("13 steps", exact=True).wait_for()
    assert page.evaluate("document.activeElement.name") == "param.n"

    page.get_by_label("Pool").select_option("local")
    page.get_by_text("Run on pool local").wait_for()

    link = page.url
    watched.page.goto("about:blank")
    watched.page.goto(link)
    page.get_by_text("13 steps", exact=True).wait_for()
    assert "Plan ü." in text.input_value()
    assert page.get_by_label("n", exact=True).input_value() == "12"
    assert page.get_by_label("Pool").input_value() == "local"
    assert page.url == link


POOL_OF_SERVER = """
[pool]
name = "served"
[[pool.workers]]
name = "w"
provider = "openai"
model = "m"
base_url = "URL"
max_tokens = 100
prices = { input = 1, output = 2 }
"""


def test_the_playground_runs_a_text_for_its_price_and_shows_the_reply_as_it_comes(
    home: Path, chromium: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    provider = Provider()
    provider.held, provider.answers = {"m"}, {"m": "It is **180** km, $60 \\cdot 3$."}
    (home / "pool.toml").write_text(POOL_OF_SERVER.replace("URL", provider.url))
    viewer = Viewer(home, "--pool", "pool.toml")
    context = open_context(chromium, viewer)
    watched = Watched(context, viewer.root)
    page = watched.go("/playground")
    page.get_by_label("Text").fill('wfdsl 1\nstep solve by w: "Solve it."')

    page.get_by_label("Question").press_sequentially("How far?", delay=20)
    run = page.get_by_role("button", name="for at most $0.00")
    run.wait_for()
    page.wait_for_function("document.querySelector('[data-priced]').disabled === false")
    run.click()
    page.wait_for_url("**/runs/*")
    page.locator(".writing").get_by_text("It").wait_for()
    assert page.get_by_role("heading", name="Answer").count() == 0
    provider.released.set()

    page.locator(".answer strong").get_by_text("180").wait_for()
    assert page.locator(".answer math mn").all_inner_texts() == ["60", "3"]
    page.locator(".answer summary").click()
    assert page.locator(".answer details pre").get_by_text("**180**").is_visible()
    context.close()
    provider.close()
    assert watched.faults == []
    assert viewer.stop() == 0
