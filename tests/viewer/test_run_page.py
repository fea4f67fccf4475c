"""The pages of one run: three views, one step with what its worker saw, texts and exports."""

from __future__ import annotations

import asyncio
import html
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import wfdsl
from tests.interpreter.toy_workers import always, pool_of
from wfdsl.api import analyze
from wfdsl.cli.main import main
from wfdsl.interpreter.events import Delta, Event, Retried
from wfdsl.interpreter.journal_reading import summaries
from wfdsl.viewer.app import Viewer
from wfdsl.viewer.completion_text import lines_of
from wfdsl.viewer.markdown import markdown_of

from .conftest import KEEP, NESTED, TWO, WRITTEN, Ask, client_of, conductor_of, nesting_pool, plan, solve

ONE = wfdsl.Workflow.from_lists([0], ["a"], [[]])


@pytest.mark.parametrize("view", ["conversation", "graph", "time"])
def test_each_view_shows_all_steps_with_the_same_links(client: TestClient, ask: Ask, view: str) -> None:
    run = ask()

    page = client.get(f"/view/runs/{run.id}?view={view}").text

    for step in "01":
        assert f'href="/view/runs/{run.id}/steps/{step}"' in page
        assert f'data-steps="{step}"' in page
    assert f'data-live="/view/events?run={run.id}"' in page


def test_the_conversation_has_question_subtasks_replies_and_answer(client: TestClient, ask: Ask) -> None:
    run = ask(names=("plan", "solve"))

    page = client.get(f"/view/runs/{run.id}").text

    places = [page.index(text) for text in ("What is 2+2?</pre>", "Plan it.", "First add, then check.", "Solve it.")]
    assert places == sorted(places)
    assert page.count("The answer is 4.") == 2
    assert "sees the question only" in page
    assert f'sees <a href="/view/runs/{run.id}/steps/0" data-step="0">plan</a>' in page


def test_what_a_worker_saw_names_the_step_of_each_reply(client: TestClient, ask: Ask) -> None:
    run = ask(names=("plan", "solve"))

    page = client.get(f"/view/runs/{run.id}/steps/1").text

    saw = page[page.index("What this worker saw") :]
    assert re.search(r"assistant: the reply of <a href=\"[^\"]*/steps/0\" data-step=\"0\">plan</a>", saw)
    assert "What is 2+2?\n\nPlan it." in saw
    assert "Its reply is seen by" not in page
    assert "Its reply is seen by" in client.get(f"/view/runs/{run.id}/steps/0").text


@pytest.mark.parametrize(
    "path",
    [
        "none",
        "none/steps/0",
        "{id}/steps/7",
        "{id}?view=odd",
        "{id}/export.exe",
        "{id}/text?part=odd",
        "{id}/text?part=question&number=9",
        "{id}/text?part=question&number=-1",
        "{id}/steps/0/text?part=message&number=99",
    ],
)
def test_what_is_not_there_is_named(client: TestClient, ask: Ask, path: str) -> None:
    assert client.get(f"/view/runs/{path.format(id=ask().id)}").status_code == 404


def test_one_stack_of_copies_is_opened_and_closed(client: TestClient, ask: Ask) -> None:
    access: list[Any] = [[] for _ in range(6)]
    run = ask(workflow=wfdsl.Workflow.from_lists([0] * 6 + [1], [*"aaabbbc"], [*access, "all"]))
    address = f"/view/runs/{run.id}"

    together = client.get(f"{address}?view=graph").text
    stacks = toggles(together, "Open")
    assert [label for _, label in stacks] == ["Open steps 0, 1, 2: 3 copies", "Open steps 3, 4, 5: 3 copies"]
    assert [cards(together), cards(client.get(f"{address}?{stacks[1][0]}").text)] == [
        ["0 1 2", "3 4 5", "6"],
        ["0 1 2", "3", "4", "5", "6"],
    ]
    opened = client.get(f"{address}?view=graph&open=0&open=3").text
    assert cards(opened) == [str(step) for step in range(7)]
    assert "One of 3 equal steps" in client.get(f"{address}/steps/1").text
    assert [query for query, _ in toggles(opened, "Stack the")] == ["view=graph&open=3", "view=graph&open=0"]


def toggles(page: str, verb: str) -> list[tuple[str, str]]:
    """The queries and labels of the links that open or close something."""
    found = re.findall(rf'href="[^"?]*\?([^"]*)" data-keep-hash dir="auto">({verb} [^<]*)<', page)
    return [(html.unescape(query), label) for query, label in found]


def cards(page: str) -> list[str]:
    """The steps of each card of a graph."""
    return re.findall(r'data-steps="([^"]*)"', page)


def test_a_large_graph_is_drawn_only_when_asked_for(client: TestClient, ask: Ask) -> None:
    access: list[Any] = ["all"] * 101
    run = ask(workflow=wfdsl.Workflow.from_lists([0] * 101, [f"step {n}" for n in range(101)], access))

    page = client.get(f"/view/runs/{run.id}?view=graph").text

    assert "<svg" not in page
    assert "&amp;draw=1" in page
    assert "<svg" in client.get(f"/view/runs/{run.id}?view=graph&draw=1").text


def test_steps_inside_a_step_are_in_each_view_and_have_pages_of_their_own(client: TestClient, ask: Ask) -> None:
    run = ask(workflow=NESTED, pool=nesting_pool())
    address = f"/view/runs/{run.id}"

    for wrong in ("1.1.0", "1.0.9", "3", "1.0", "x", "0.0.0"):
        assert client.get(f"{address}/steps/{wrong}").status_code == 404
    page = client.get(f"{address}/steps/1.0.1").text
    assert f'the reply of <a href="{address}/steps/1.0.0" data-step="1.0.0">step 0</a>' in page
    for view in ("conversation", "time"):
        assert 'data-steps="1.0.1"' in client.get(f"{address}?view={view}").text, view
    assert "writes round 0" in client.get(f"{address}?view=time").text
    opened = client.get(f"{address}?view=graph").text
    ((query, _),) = toggles(opened, "Close")
    closed = client.get(f"{address}?{query}").text
    assert (cards(closed), cards(opened)) == (["0", "1", "2"], ["0", "1", "1.0.0", "1.0.1", "2"])
    assert [query for query, _ in toggles(closed, "Open")] == ["view=graph"]


def test_what_a_conductor_wrote_is_shown_round_by_round_with_its_problems(client: TestClient, journal: Path) -> None:
    wrong = WRITTEN.replace("[[], [0]]", "[[], [1]]")
    pool = wfdsl.Pool.from_functions([plan, solve])
    solution = conductor_of(wrong, WRITTEN, KEEP).solve_sync("What is 2+2?", pool, journal=journal)

    page = client.get(f"/view/runs/{solution.run.id}").text

    assert "What the Conductor wrote: invalid" in page
    assert '<span class="problem">' in page
    assert "Asked again, time 1: valid" in page
    assert "round 1: answer kept (empty revision)" in page
    assert '<span class="subtasks" title="subtasks, step 1">&#34;Solve it.&#34;</span>' in page
    for view in ("graph", "time"):
        assert 'data-steps="0.0.1"' in client.get(f"/view/runs/{solution.run.id}?view={view}").text, view
    exported = client.get(f"/view/runs/{solution.run.id}/export.wf").text
    assert analyze(exported, form="wf").workflow == TWO


def test_long_texts_are_cut_and_whole_at_an_address_of_their_own(client: TestClient, ask: Ask) -> None:
    long = "x" * 150_000 + "end"
    run = ask(workflow=ONE, pool=pool_of(always(long)))
    page = client.get(f"/view/runs/{run.id}")

    assert len(page.content) < 1_000_000
    assert "Show all: 130,003 more characters" in page.text
    assert client.get(f"/view/runs/{run.id}/steps/0/text?part=reply").text == long
    assert len(client.get(f"/view/runs/{run.id}/steps/0").content) < 1_000_000


def test_a_run_is_taken_elsewhere_in_four_forms_and_no_reply_leaves_its_fence(client: TestClient, ask: Ask) -> None:
    run = ask(names=("plan", "solve"))

    def get(form: str) -> str:
        answer = client.get(f"/view/runs/{run.id}/export.{form}")
        assert answer.status_code == 200
        return answer.text

    assert wfdsl.Run.from_json(get("json")) == run
    written = analyze(get("wf"), form="wf")
    assert (written.workflow, written.tree and written.tree.names) == (run.workflow, run.names)
    assert "<!doctype html>" in get("html")
    assert "## Answer\n\n```text\nThe answer is 4.\n```" in get("md")
    fenced = ask(workflow=ONE, pool=pool_of(always("```\n# no heading\n````")))
    assert "`````text\n```\n# no heading\n````\n`````" in markdown_of(fenced)


def test_a_completion_has_its_items_marked_and_problems_below_their_line() -> None:
    text = 'model_id = [0, 9]\nsubtasks = ["a",\n"b"]\naccess_list = [[], [1]]'
    problem = "line 4: step 1 sees step 1, which is not an earlier step [later-step]"
    lines = lines_of(text, (problem, "beyond all lines"))

    marked = [(piece.text, piece.list, piece.step) for line in lines for piece in line.pieces if piece.list]
    assert marked[:4] == [("0", "workers", 0), ("9", "workers", 1), ('"a"', "subtasks", 0), ('"b"', "subtasks", 1)]
    assert "".join(piece.text for piece in lines[0].pieces) == "model_id = [0, 9]"
    assert lines[3].problems == ("step 1 sees step 1, which is not an earlier step [later-step]",)
    assert lines[4].problems == ("beyond all lines",)


def test_what_a_conductor_has_written_so_far_is_shown_while_the_run_is_in_progress(
    client: TestClient, journal: Path
) -> None:
    seen: list[str] = []

    async def looking(messages: list[dict[str, str]]) -> str:
        (run,) = summaries(journal)
        seen.append(client.get(f"/view/runs/{run.id}").text)
        return "It is 4."

    pool = wfdsl.Pool.from_functions([plan, looking])
    conductor_of("No lists.", WRITTEN, KEEP).solve_sync("What is 2+2?", pool, journal=journal)

    assert '<span class="state running">running</span>' in seen[0]
    assert "What the Conductor wrote: invalid" in seen[0]
    assert "Asked again, time 1: valid" in seen[0]
    assert "First add, then check." in seen[0]


@pytest.mark.parametrize("text", ["", "\n\n", "model_id", "x" * 30_000, "\r\nmodel_id = [0]\u2028", "é" * 10])
def test_every_completion_is_shown_whole(text: str) -> None:
    shown = "\n".join("".join(piece.text for piece in line.pieces) for line in lines_of(text, ()))

    assert shown.replace("\n", "") == text.replace("\r", "").replace("\n", "")


def test_a_page_of_a_run_is_read_again_once_the_run_has_changed(client: TestClient, ask: Ask, journal: Path) -> None:
    run = ask()
    before = client.get(f"/view/runs/{run.id}").headers["etag"]
    ask()

    assert client.get(f"/view/runs/{run.id}").headers["etag"] == before


IN_VIEWS = {
    "conversation": (
        '<span class="state running">running</span> <a class="name"',
        '<span class="state stopped">stopped</span> <a class="name"',
    ),
    "graph": ("Plan it. · running</title>", "Plan it. · waiting · stopped</title>"),
    "time": ('<rect class="running"', '<rect class="lost"'),
}
"""What each view shows of a step whose call is in flight, and of one whose process died."""


def in_flight(journal: Path, look: Callable[[], object]) -> None:
    """Look while the first call of a run is in flight."""

    async def looking(messages: list[dict[str, str]]) -> str:
        look()
        return "It is 4."

    asyncio.run(wfdsl.run(TWO, "What is 2+2?", wfdsl.Pool.from_functions([looking, solve]), journal=journal))


@pytest.mark.parametrize("view", IN_VIEWS)
def test_a_step_whose_call_is_in_flight_is_running(client: TestClient, journal: Path, view: str) -> None:
    seen: list[str] = []

    in_flight(journal, lambda: seen.append(client.get(f"/view/runs/{summaries(journal)[0].id}?view={view}").text))

    running, stopped = IN_VIEWS[view]
    assert running in seen[0]
    assert stopped not in seen[0]
    assert "was in flight" not in seen[0]


@pytest.mark.parametrize("view", IN_VIEWS)
def test_a_step_whose_process_died_is_stopped_and_its_call_lost(client: TestClient, journal: Path, view: str) -> None:
    copy = journal.with_name("copy.db")
    in_flight(journal, lambda: backup(journal, copy))
    copy.replace(journal)
    (run,) = summaries(journal)

    page = client.get(f"/view/runs/{run.id}?view={view}").text

    running, stopped = IN_VIEWS[view]
    assert stopped in page
    assert running not in page
    assert "was in flight when its process ended" in page


def test_a_running_step_shows_its_text_where_run_and_page_share_a_process(journal: Path) -> None:
    viewer = Viewer(journal)
    seen: list[str] = []
    events: list[Event] = [Delta((0,), "It w"), Retried((0,), 1, 0.0, "busy"), Delta((0,), "It is "), Delta((0,), "<4")]
    viewer.index.live.append(lambda run_id: events)
    with client_of(viewer) as client:
        in_flight(journal, lambda: seen.append(client.get(f"/view/runs/{summaries(journal)[0].id}").text))

    assert re.findall(r'<pre class="writing"[^>]*>\n(.*?)</pre>', seen[0]) == ["It is &lt;4"]


def test_tool_calls_have_their_names_and_arguments_in_every_text_of_a_run(
    client: TestClient, ask: Ask, journal: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = {"id": "c1", "name": "weather", "arguments": '{"city": "Paris"}'}
    asked: list[dict[str, Any]] = [
        {"role": "user", "content": "Is it hot?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "user", "content": "So?"},
    ]
    run = ask(asked)
    monkeypatch.setenv("WFDSL_HOME", str(journal.parent))

    assert main(["runs", "show", run.id]) == 0
    texts = [capsys.readouterr().out, wfdsl.to_html(run), markdown_of(run)]
    texts += [client.get(f"/view/runs/{run.id}{page}").text for page in ("", "/steps/0")]

    for text in texts:
        shown = re.sub("<[^>]*>", "", html.unescape(text))
        assert re.search(r'called weather:?\s+(`*text\n)?\{"city": "Paris"\}', shown), text


def test_a_reply_that_was_cut_has_the_server_s_own_word_for_it(client: TestClient, ask: Ask) -> None:
    run = ask(pool=pool_of(always("Plan."), always("The answer is", finish="length", ending="MAX_TOKENS")))

    for text in (markdown_of(run), client.get(f"/view/runs/{run.id}/steps/1").text):
        assert re.search(r"length \(MAX\\?_TOKENS\)", text)


def backup(journal: Path, copy: Path) -> None:
    with sqlite3.connect(journal) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close()
    target.close()
