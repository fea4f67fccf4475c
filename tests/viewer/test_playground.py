"""The playground: texts checked and drawn, within limits, and never as markup."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from starlette.testclient import TestClient

from wfdsl.api import analyze
from wfdsl.viewer.playground import examples

from .test_hostile_texts import TEXTS, assert_only_our_own
from .test_redo import ended

FILE = 'wfdsl 1\nparam n = 2\nstep try by 0 copies {n}: "Try it."\nstep end by 0 sees try: "End."\n'
LISTS = 'model_id = [0, 1]\nsubtasks = ["Plan.", "Solve."]\naccess_list = [[], [0]]'
ADDRESS = "/view/playground"
Post = Callable[..., httpx2.Response]


@pytest.fixture
def post(client: TestClient) -> Post:
    token = token_in(client.get(ADDRESS).text)

    def send(text: str, form: str = "wf", action: str = "check", **more: str) -> httpx2.Response:
        return client.post(ADDRESS, data={"token": token, "text": text, "form": form, "action": action, **more})

    return send


def part(page: str, pattern: str) -> str:
    """What a page has in the group of a pattern."""
    found = re.search(pattern, page, re.DOTALL)
    assert found
    return html.unescape(found[1])


def token_in(page: str) -> str:
    return part(page, r'name="token" value="(\w+)"')


def text_in(page: str) -> str:
    return part(page, r'<textarea name="text"[^>]*>\n(.*?)</textarea>')


def status_in(page: str) -> str:
    return part(page, r'<p role="status">(.*?)</p>')


def problem_in(page: str) -> str:
    return part(page, r'<p class="error" id="problem" role="alert">(.*?)</p>')


def test_a_workflow_file_is_drawn_and_has_its_parameters_as_fields_which_are_kept(post: Post) -> None:
    page = post(FILE).text

    assert status_in(page) == "3 steps"
    assert "<svg" in page
    assert re.search(r'<input name="param.n" value="" placeholder="2"', page)
    assert problem_in(page) == ""
    assert status_in(post(FILE, **{"param.n": "5"}).text) == "6 steps"
    assert status_in(post("  \n").text) == ""
    assert status_in(post("model_id = []\nsubtasks = []\naccess_list = []", "completion").text) == "1 error"

    page = post(FILE, **{"param.n": "many"}).text
    assert "many" in problem_in(page)
    assert '<input name="param.n" value="many"' in page
    assert text_in(page) == FILE


@pytest.mark.parametrize("form", ["wf", "completion"])
def test_a_problem_stands_below_its_line(post: Post, form: str) -> None:
    text = FILE.replace("sees try", "sees tri") if form == "wf" else LISTS.replace("[0]]", "[1]]")
    page = post(text, form).text

    assert status_in(page) == "1 error"
    listing = page[page.index('<pre class="completion"') :]
    problem = analyze(text, form="wf" if form == "wf" else "completion").diagnostics[0]
    line = analyze(text, form="wf" if form == "wf" else "completion").source.position(problem.span.start)[0]
    before, _, after = listing.partition('<span class="problem">')
    assert before.count("\n") == line + 1
    assert problem.code in after
    assert 'wrong"' in before
    assert "<svg" not in page


def test_every_example_is_valid(client: TestClient) -> None:
    assert {each.form for each in examples()} == {"wf", "completion"}
    for each in examples():
        page = client.get(ADDRESS, params={"example": each.name}).text
        assert text_in(page) == each.text
        assert "<svg" in page
        assert problem_in(page) == ""
        assert "error" not in status_in(page)
    assert client.get(ADDRESS, params={"example": "none"}).status_code == 404


def test_many_nodes_are_drawn_when_asked_for(post: Post) -> None:
    steps = "".join(f'step s{number} by 0 sees all: "Do {number}."\n' for number in range(120))
    text = f'wfdsl 1\n{steps}step end by 0 sees all: "End."\n'

    page = post(text).text
    assert "<svg" not in page
    assert "121 nodes" in page
    assert "<svg" in post(text, action="draw").text


def test_limits_on_size(client: TestClient, post: Post) -> None:
    long = post("#" * 100_001)
    assert long.status_code == 413
    assert "at most 100,000" in problem_in(long.text)
    assert text_in(long.text) == "#" * 100_001

    huge = post("#" * 1_000_001)
    assert huge.status_code == 413
    assert "1,000,000 bytes" in huge.text


def test_only_the_viewers_own_form_is_taken(client: TestClient, stranger: TestClient) -> None:
    assert client.post(ADDRESS, data={"text": FILE, "form": "wf"}).status_code == 403
    client.cookies.clear()
    assert stranger.post(ADDRESS, data={"text": FILE, "form": "wf"}).status_code == 403
    assert stranger.get(ADDRESS).status_code == 403


@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_text_adds_no_element_and_no_attribute(post: Post, text: str) -> None:
    as_string = text.replace("\\", "").replace('"', "'").replace("{", "").replace("}", "")
    for page in (
        post(text, "wf", **{"param.x": text}).text,
        post(text, "completion").text,
        post(f'wfdsl 1\ntitle "{as_string}"\nparam n = "{as_string}"\nstep a by 0: "{as_string} {{n}}"').text,
    ):
        assert_only_our_own(page)


def form_of(pooled: TestClient, **fields: str) -> dict[str, str]:
    """The form with its price, as a browser would send it."""
    form = {"token": token_in(pooled.get(ADDRESS).text), "text": FILE, "form": "wf", "question": "How many?", **fields}
    page = pooled.post(ADDRESS, data=form).text
    found = re.search(r'name="price" value="([^"]*)"', page)
    return form if found is None else {**form, "price": found[1], "action": "run"}


def test_a_run_starts_with_its_price_as_budget_and_is_found_again_with_its_pool(
    pooled: TestClient, client: TestClient, journal: Path, pool_file: Path
) -> None:
    form = form_of(pooled)
    shown = pooled.post(ADDRESS, data={**form, "action": "check"}).text
    assert re.search(r"Run for at most \$0\.000\d", shown)
    assert "3 calls" in shown
    assert not journal.exists()

    answer = pooled.post(ADDRESS, data=form)
    assert answer.status_code == 303
    assert pooled.get(answer.headers["location"]).status_code == 200
    new_id = answer.headers["location"].rpartition("/")[2]
    done = ended(journal, new_id)

    assert (done.status, done.answer, done.question) == ("done", "180 km", "How many?")
    assert done.names == ("try[1]", "try[2]", "end")
    assert done.settings["budget"]["usd"] == pytest.approx(float(form["price"]))
    assert done.pool == "two"
    assert done.settings["origin"] == {"file": "playground", "pool": str(pool_file)}
    row = re.search(rf'<tr id="run-{new_id}">.*?</tr>', client.get("/view/?text=playground").text, re.DOTALL)
    assert row
    assert "<td>playground</td>\n<td>two</td>" in row[0]
    assert "Ask again for at most" in client.get(f"/view/runs/{new_id}/steps/2/redo").text


def test_a_pool_is_chosen_by_its_name(post: Post) -> None:
    text = 'wfdsl 1\nstep a by planner: "Say it."\n'

    page = post(text, pool="local", question="What?").text

    assert '<option value="local" selected>local</option>' in page
    assert "Run on pool local" in page
    assert status_in(page) == "1 step"
    assert 'name="price" value="0.0000000000"' in page


@pytest.mark.parametrize("name", ["nothing", "pool.toml", "openai:x", "/etc/passwd"])
def test_only_pools_that_are_offered_can_be_chosen(post: Post, name: str) -> None:
    assert f"start the viewer with --pool {name}" in problem_in(post(FILE, pool=name).text)


def test_a_price_that_was_not_shown_is_not_paid(pooled: TestClient, journal: Path) -> None:
    form = form_of(pooled)
    for changed in ({"param.n": "9"}, {"price": ""}, {"question": "How many? " * 90}):
        answer = pooled.post(ADDRESS, data={**form, **changed})
        assert answer.status_code == 409
        assert "nothing was run" in problem_in(answer.text)
    assert pooled.post(ADDRESS, data={**form, "token": ""}).status_code == 403
    assert not journal.exists()


def test_what_cannot_run_is_not_run(pooled: TestClient, client: TestClient, post: Post, journal: Path) -> None:
    for changed in ({"question": " "}, {"text": "step"}, {"text": 'wfdsl 1\nstep a by 7: "x"\n'}):
        form = form_of(pooled, **changed)
        assert "price" not in form
        answer = pooled.post(ADDRESS, data={**form, "action": "run", "price": ""})
        assert answer.status_code == 400
        assert "Nothing was run" in problem_in(answer.text)
    without = post(FILE, action="run", question="How many?", price="")
    assert without.status_code == 400
    assert "a pool" in problem_in(without.text)
    assert not journal.exists()
