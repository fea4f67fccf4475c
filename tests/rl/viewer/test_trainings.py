"""The pages of trainings: found, running or not, curves with errors, tables by kind, and samples that are filtered."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.rl.viewer.training_folders import (
    GROUP,
    HELD_OUT,
    ONE,
    QUESTIONS,
    WRONG,
    TrainingWriter,
    finish,
    write_training,
)
from tests.viewer.test_hostile_texts import ADDRESSES, ELEMENTS, TEXTS, Structure
from wfdsl.viewer.app import Viewer
from wfdsl_rl.training.plots import running_means
from wfdsl_rl.viewer.training_folder import MetricsFile, TrainingFolder
from wfdsl_rl.viewer.trainings import pages

ITERATIONS = 6
COMPLETIONS = QUESTIONS * GROUP


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a training is, two folders below."""
    found = tmp_path_factory.mktemp("home")
    write_training(found / "runs" / "first", iterations=ITERATIONS)
    return found


def client_of(home: Path) -> Iterator[TestClient]:
    viewer = Viewer(home / "journal.db", [pages([home])])
    client = TestClient(Starlette(routes=[viewer.mount()]), base_url="http://127.0.0.1:8601")
    client.get(viewer.path)
    yield client
    viewer.close()


@pytest.fixture
def client(home: Path) -> Iterator[TestClient]:
    yield from client_of(home)


@pytest.fixture
def address(home: Path) -> str:
    """The page of the training."""
    return f"/view/trainings/{TrainingFolder(home / 'runs' / 'first').id}"


def rows_of(page: str, label: str) -> list[list[str]]:
    """The texts of a table's cells."""
    (table,) = re.findall(rf'aria-label="{re.escape(label)}"><table.*?</table>', page, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in row] for row in cells]


def test_trainings_are_found_in_folders_below_and_listed_with_how_far_they_are(client: TestClient, home: Path) -> None:
    page = client.get("/view/trainings").text

    ((_, row),) = [rows_of(page, "Trainings")]
    assert row[0].startswith("first")
    assert row[2] == f"base, {ITERATIONS} of {ITERATIONS}"
    assert str(home / "runs" / "first") in page
    assert '<a href="/view/trainings" aria-current="page">Trainings</a>' in page


def test_a_training_is_shown_with_its_stages_and_its_curves(client: TestClient, address: str, home: Path) -> None:
    pytest.importorskip("matplotlib")
    page = client.get(address).text

    last = json.loads((home / "runs/first/metrics.jsonl").read_text("utf-8").splitlines()[-2])
    head, row = rows_of(page, "Stages")
    found = dict(zip(head, row, strict=True))
    assert (found["Stage"], found["Step"]) == ("base", "6 of 6")
    assert (found["Reward"], found["Accuracy"]) == (f"{last['reward']:.2f}", f"{last['accuracy']:.2f}")
    assert re.fullmatch(r"\d+\.\d ± \d+\.\d %", found["Held-out accuracy"])
    assert "Workers are simulated" in page
    pictures = dict(re.findall(r'<img src="([^"]+/curves/([a-z]+)\.svg[^"]*)"', page))
    assert set(pictures.values()) == {"reward", "accuracy", "valid", "steps", "tokens", "cost"}
    for picture, name in pictures.items():
        answer = client.get(unescape(picture))
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
        assert answer.text.count("<svg") == 1
        assert "held-out questions" in answer.text, name
        assert "simulated workers" in answer.text, name


def test_a_band_is_the_standard_error_of_the_mean_of_the_latest_iterations() -> None:
    found = running_means([1, 2, 3, 4, 5, 6], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0])

    assert found.at == [1, 2, 3, 4, 5, 6]
    assert found.values == [0.0, 0.5, pytest.approx(1 / 3), 0.5, 0.4, 0.6]
    assert found.errors[0] is None
    assert found.errors[1] == pytest.approx(math.sqrt(0.5) / math.sqrt(2))
    assert found.errors[5] == pytest.approx(math.sqrt(0.3) / math.sqrt(5))


def test_long_curves_have_few_points_and_end_with_the_last_iteration() -> None:
    steps = list(range(1, 2001))

    found = running_means(steps, [float(step) for step in steps])

    assert len(found.at) == 250
    assert found.at[-1] == 2000
    assert found.values[-1] == pytest.approx(sum(range(1951, 2001)) / 50)


def test_tables_by_kind_count_what_the_samples_say(client: TestClient, address: str, home: Path) -> None:
    page = client.get(address).text

    head, *rows = rows_of(page, f"base: Training questions, the last {ITERATIONS} iterations")
    total = dict(zip(head, rows[-1], strict=True))
    assert (total["Kind"], total["Samples"]) == ("all", f"{ITERATIONS * COMPLETIONS}")
    assert total["Valid"].startswith("66.7 ±")
    assert total["Steps"].startswith("1.50 ±")
    kept = [each for batch in samples_in(home, "step") for each in batch]
    for row in rows[:-1]:
        kind, family = row[0].split(": ")
        own = [each for each in kept if (each["kind"], each["family"]) == (kind, family)]
        assert row[1] == str(len(own))
        right = sum(each["outcome"] == "right" for each in own) / len(own)
        assert row[2].startswith(f"{100 * right:.1f}")
        asked = [worker for each in own if each["workflow"] for worker in each["workflow"]["model_id"]]
        share = asked.count(0) / len(asked)
        assert dict(zip(head, row, strict=True))["worker 0"] == f"{100 * share:.0f} %"
    held_out = rows_of(page, f"base: Held-out questions, evaluation at iteration {ITERATIONS}")
    assert held_out[-1][:2] == ["all", str(HELD_OUT)]


def samples_in(home: Path, name: str) -> list[list[dict[str, Any]]]:
    files = sorted((home / "runs/first/base/samples").glob(f"{name}-*.jsonl.gz"))
    return [[json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()] for path in files]


def test_samples_are_filtered_and_paged(client: TestClient, address: str, home: Path) -> None:
    wrong = [each for batch in samples_in(home, "step") for each in batch if each["outcome"] == "invalid"]
    seen: list[str] = []
    query = "?outcome=invalid&questions=step"
    first = client.get(f"{address}/base/samples{query}").text
    assert 'rel="next"' not in first
    for step in range(ITERATIONS):
        page = client.get(f"{address}/base/samples?iteration={step}&questions=step").text
        assert page.count('<li class="step"') == COMPLETIONS
    page = client.get(f"{address}/base/samples").text
    while True:
        seen += re.findall(r'<li class="step" id="([^"]+)"', page)
        older = re.search(r'<a rel="next" href="([^"]+)"', page)
        if older is None:
            break
        page = client.get(f"{address}/base/samples{unescape(older[1])}").text

    assert first.count('<li class="step"') == len(wrong) == ITERATIONS * COMPLETIONS // 3
    assert 'class="state failed">invalid' in first
    assert 'class="state done">right' not in first
    assert len(seen) == len(set(seen)) == ITERATIONS * COMPLETIONS + 2 * HELD_OUT
    assert seen[0] == "step-000005-0" or seen[0] == f"eval-{ITERATIONS:06d}-0"


def test_a_sample_shows_its_question_completion_steps_and_replies(client: TestClient, address: str, home: Path) -> None:
    batch = samples_in(home, "step")[2]
    index = next(at for at, each in enumerate(batch) if len(each["replies"]) == 2)
    page = unescape(client.get(f"{address}/base/samples/step-000002/{index}").text)

    assert batch[index]["question"] in page
    assert all(reply.splitlines()[0] in page for reply in batch[index]["replies"])
    assert f"{batch[index]['workflow']['model_id'][1]}: sim-" in page
    assert ", sees 0" in page
    assert '<span class="subtasks" title="subtasks, step 1">' in page
    assert client.get(f"{address}/base/samples/step-000002/{len(batch)}").status_code == 404


def test_a_sample_leads_to_its_run_in_the_journal_of_the_training(tmp_path: Path) -> None:
    writer = TrainingWriter(tmp_path / "one", journal=True)
    writer.iteration(0)
    writer.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two", ignore=shutil.ignore_patterns("journal.db*"))
    one, two = (f"/view/trainings/{TrainingFolder(tmp_path / name).id}" for name in ("one", "two"))

    for client in client_of(tmp_path):
        assert "Its run" not in client.get(f"{two}/base/samples/step-000000/0").text
        assert client.get(f"{two}/journal/").status_code == 404
        sample = client.get(f"{one}/base/samples/step-000000/0").text
        (address,) = re.findall(r'<a href="([^"]+)">Its run</a>', sample)
        run = client.get(address)
        assert run.status_code == 200
        assert "Solve the problem." in run.text
        assert f'href="{one}/journal/.."' in run.text
        everything = client.get(f"{one}/journal/").text
        assert everything.count("<tr id=") == COMPLETIONS * 2 // 3
        assert client.get(f"{one}/journal/runs/none").status_code == 404
        assert client.get(re.findall(r'<link rel="stylesheet" href="([^"]+)"', run.text)[0]).status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("-none", 404),
        ("/recursion/samples", 404),
        ("/base/samples/none-0/0", 404),
        ("/base/curves/kl.svg", 404),
        ("/base/curves/none.svg", 404),
        ("/base/samples?outcome=none", 400),
        ("/base/samples?iteration=x", 400),
        ("/%2e%2e/samples", 404),
    ],
)
def test_what_is_not_there_is_named(client: TestClient, address: str, path: str, status: int) -> None:
    assert client.get(f"{address}{path}").status_code == status


def test_without_a_training_the_page_says_how_to_give_one(tmp_path: Path) -> None:
    for client in client_of(tmp_path):
        assert "wfdsl view FOLDER" in client.get("/view/trainings").text


def test_a_line_that_is_still_being_written_is_left_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path)
    assert metrics.entries() == []
    lines = [json.dumps({"stage": "base", "step": step, "reward": step / 10}) + "\n" for step in (1, 2, 3)]

    seen = []
    for text in (lines[0], lines[1][:9], lines[1][9:], "not JSON\n", '{"stage": "../x", "step": 1}\n', lines[2]):
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
        seen.append([entry["step"] for entry in metrics.entries()])

    assert seen == [[1], [1], [1, 2], [1, 2], [1, 2], [1, 2, 3]]
    assert metrics.damaged == 2


def test_a_file_that_a_resumed_training_has_cut_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path)

    def write(*steps: int) -> None:
        new = path.with_suffix(".new")
        new.write_text("".join(json.dumps({"stage": "base", "step": step}) + "\n" for step in steps), "utf-8")
        new.replace(path)

    write(1, 2, 3)
    metrics.entries()
    write(1, 9, 4, 5, 6)

    assert [entry["step"] for entry in metrics.entries()] == [1, 9, 4, 5, 6]
    path.unlink()
    assert metrics.entries() == []


HOLDING = """
import sys, time
from pathlib import Path
from wfdsl.interpreter.journal_file import Owner
owner = Owner(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_a_training_that_died_is_told_from_one_that_runs_and_from_one_that_is_done(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    writer = TrainingWriter(folder)
    writer.iteration(0)
    states = []

    def look() -> None:
        (client,) = clients
        states.append(re.findall(r'class="state [a-z]*">([a-z]+)<', client.get("/view/trainings").text)[0])

    clients: list[TestClient] = []
    for client in client_of(tmp_path):
        clients.append(client)
        look()
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDING, str(folder / "running")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        look()
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        process.stdout.close()
        look()
        page = client.get(f"/view/trainings/{TrainingFolder(folder).id}").text
        assert f"wfdsl-train --resume {folder}" in page
        finish(folder)
        look()

    assert states == ["interrupted", "running", "interrupted", "done"]


def test_a_page_that_waits_is_told_when_something_was_logged(tmp_path: Path) -> None:
    writer = TrainingWriter(tmp_path / "one")
    writer.iteration(0)
    training = TrainingFolder(tmp_path / "one")

    versions = [training.version()]
    changes: list[Callable[[], None]] = [partial(writer.iteration, 1), lambda: None, partial(writer.evaluation, 2)]
    changes.append(partial(finish, tmp_path / "one"))
    for change in changes:
        change()
        versions.append(training.version())

    assert [first == second for first, second in pairwise(versions)] == [False, True, False, False]
    for client in client_of(tmp_path):
        page = client.get(f"/view/trainings/{training.id}").text
        assert f'data-live="/view/trainings/{training.id}/events" data-version="{versions[-1]}"' in page


def test_half_a_file_of_samples_is_shown_as_far_as_it_is_whole(tmp_path: Path) -> None:
    writer = TrainingWriter(tmp_path / "one")
    writer.iteration(0)
    (path,) = (tmp_path / "one/base/samples").iterdir()
    packed = path.read_bytes()
    path.write_bytes(packed + packed[: len(packed) // 2])
    (path.parent / "step-000001.jsonl.gz").write_bytes(b"\x1f\x8bnothing")
    (path.parent / "step-000002.jsonl.gz").write_bytes(
        gzip.compress(b'{"outcome": 3, "workflow": {"x": 1}}\n[]\nnull\n')
    )

    for client in client_of(tmp_path):
        address = f"/view/trainings/{TrainingFolder(tmp_path / 'one').id}"
        assert client.get(address).status_code == 200
        page = client.get(f"{address}/base/samples").text
        assert page.count('<li class="step"') >= COMPLETIONS + 1
        assert client.get(f"{address}/base/samples/step-000002/0").status_code == 200


@pytest.mark.parametrize("resolved", ['{"experiment": 1, "pool": [], "train": 3}', '{"experiment":', "[]", "null"])
def test_options_that_are_not_those_of_a_training_break_no_page(tmp_path: Path, resolved: str) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "resolved.json").write_text(resolved, "utf-8")
    (tmp_path / "one" / "single-workers.json").write_text("[3]", "utf-8")
    (tmp_path / "one" / "metrics.jsonl").write_text(
        '{"stage": "base", "step": 1, "reward": NaN, "accuracy": "x", "eval_accuracy": 1e999}\n', "utf-8"
    )

    for client in client_of(tmp_path):
        assert client.get("/view/trainings").status_code == 200
        if '"experiment"' in resolved:
            assert client.get(f"/view/trainings/{TrainingFolder(tmp_path / 'one').id}").status_code == 200


def pages_of(client: TestClient, folder: Path, batch: str = "step-000000") -> list[str]:
    address = f"/view/trainings/{quote(TrainingFolder(folder).id)}"
    return ["/view/trainings", address, f"{address}/base/samples", f"{address}/base/samples/{batch}/0"]


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_texts_add_no_element_and_no_attribute(tmp_path: Path, text: str) -> None:
    name = re.sub(r"[/\x00]", "_", text)[:100]
    folder = tmp_path / name
    folder.mkdir()
    names = ("kind", "family", "question", "task", "completion", "answer", "extracted", "outcome")
    lists = {"problems": [text], "replies": [text], "runs": [text]}
    sample = {**dict.fromkeys(names, text), **lists, "reward": 1.0}
    workflow = {"model_id": [0], "subtasks": [text], "access_list": [[]]}
    hostile = {"experiment": text, "pool": {"name": text, "workers": [{"name": text}]}, "train": {"model": text}}
    (folder / "resolved.json").write_text(json.dumps(hostile), "utf-8")
    (folder / "metrics.jsonl").write_text(json.dumps({"stage": "base", "step": 1, "reward": 0.5}) + "\n", "utf-8")
    (folder / "single-workers.json").write_text(json.dumps({text: 0.5}), "utf-8")
    (folder / "base" / "samples").mkdir(parents=True)
    lines = "".join(json.dumps({**sample, "workflow": each}) + "\n" for each in (workflow, None))
    (folder / "base/samples/step-000000.jsonl.gz").write_bytes(gzip.compress(lines.encode()))

    for client in client_of(tmp_path):
        for path in pages_of(client, folder):
            answer = client.get(path)
            assert answer.status_code == 200, path
            found = Structure(answer.text).elements
            assert [tag for tag, _ in found if tag not in ELEMENTS | {"img", "figcaption"}] == [], path
            assert sum(tag == "script" for tag, _ in found) == 1
            for _, attributes in found:
                assert [each for each in attributes if each.startswith("on") or each in ("style", "srcdoc")] == []
                for each in ADDRESSES & attributes.keys():
                    assert attributes[each].startswith(("/view/", "#", "?")), (path, attributes)


def test_names_of_workers_are_text_in_curves_too() -> None:
    pytest.importorskip("matplotlib")
    from wfdsl_rl.training.plots import Means, curve_svg

    alone = {"<script>window.hacked=1</script>": 0.2, "$x^{": 0.5, "a & b": 0.9}
    svg = curve_svg("accuracy", running_means([1, 2], [0.1, 0.4]), Means((), (), ()), alone=alone, simulated=False)

    assert "<script" not in svg
    assert all(text in unescape(svg) for text in alone)


def test_no_page_is_larger_than_a_megabyte(tmp_path: Path) -> None:
    def long(task: Any) -> Any:
        return task.model_copy(update={"question": f"{task.question}\n{'é' * 60_000}"})

    writer = TrainingWriter(tmp_path / "one", tasks=long)
    for step in range(3):
        writer.iteration(step, [ONE + " " * 60_000, *[WRONG + "z" * 60_000] * 3])  # few fail, for want of the question

    for client in client_of(tmp_path):
        for path in pages_of(client, tmp_path / "one"):
            assert len(client.get(path).content) < 1_000_000, path
