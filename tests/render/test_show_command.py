"""`wfdsl show`: formats, files and errors, as somebody at the command line meets them."""

import io
import sys
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path

import pytest

from wfdsl import Step, Workflow
from wfdsl.cli.main import main
from wfdsl.interpreter.record import Run, StepRecord

COMPLETION = """\
model_id = [2, 0, 1]
subtasks = ["Plan it.", "Solve it.", "Check it."]
access_list = [[], [0], "all"]
"""


@pytest.fixture
def workflow(tmp_path: Path) -> str:
    path = tmp_path / "answer.txt"
    path.write_text(COMPLETION)
    return str(path)


def test_the_terminal_drawing_is_the_default(workflow: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["show", workflow])

    assert code == 0
    assert "◉ step 2  worker 1  ← all  answer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("chosen", "start"),
    [("mermaid", "flowchart TD"), ("svg", "<svg ")],
)
def test_each_format_goes_to_standard_output(
    workflow: str, chosen: str, start: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    code = main(["show", workflow, "--format", chosen])

    assert code == 0
    assert capfdbinary.readouterr().out.decode("utf-8").startswith(start)


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.svg", "<svg "), ("a.MMD", "flowchart"), ("a.txt", "3 steps · chain")],
)
def test_the_suffix_of_the_file_picks_the_format(workflow: str, tmp_path: Path, name: str, start: str) -> None:
    code = main(["show", workflow, "-o", str(tmp_path / name)])

    assert code == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_an_asked_format_wins_over_the_suffix(workflow: str, tmp_path: Path) -> None:
    out = tmp_path / "picture.out"

    code = main(["show", workflow, "--format", "svg", "-o", str(out)])

    assert code == 0
    assert ET.parse(out).getroot().tag.endswith("svg")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(COMPLETION.encode())))

    code = main(["show", "-"])

    assert code == 0
    assert "3 steps · chain" in capfdbinary.readouterr().out.decode()


@pytest.mark.parametrize("name", ["picture.xyz", "picture.bmp", "picture"])
def test_an_unknown_suffix_is_one_line(
    workflow: str, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["show", workflow, "-o", str(tmp_path / name)])

    err = capsys.readouterr().err
    assert (code, err.count("\n")) == (2, 1)
    assert ".png" in err
    assert not (tmp_path / name).exists()


@pytest.mark.skipif(find_spec("resvg_py") is None, reason="PNG needs the extra view")
def test_a_png_is_twice_the_size_of_the_svg(workflow: str, tmp_path: Path) -> None:
    for name in ("a.svg", "a.png"):
        assert main(["show", workflow, "-o", str(tmp_path / name)]) == 0

    svg = ET.parse(tmp_path / "a.svg").getroot()
    png = (tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20]) == 2 * int(svg.attrib["width"])


@pytest.mark.parametrize("module", ["resvg_py", "cairosvg"])
def test_what_a_format_needs_is_named_where_it_is_missing(
    workflow: str, tmp_path: Path, module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    code = main(["show", workflow, "-o", str(tmp_path / ("a.png" if module == "resvg_py" else "a.pdf"))])

    err = capsys.readouterr().err
    assert (code, err.count("\n")) == (2, 1)
    assert "pip install" in err


def test_a_file_that_cannot_be_written_is_one_line(
    workflow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["show", workflow, "-o", str(tmp_path / "none" / "a.svg")])

    err = capsys.readouterr().err
    assert code == 2
    assert str(tmp_path / "none" / "a.svg") in err
    assert err.count("\n") == 1


def test_a_wrong_workflow_is_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text('model_id = [0]\nsubtasks = ["a"]\naccess_list = [[3]]\n')

    code = main(["show", str(path)])

    assert code == 1
    assert capsys.readouterr().out == ""


def test_no_color_is_honoured(
    workflow: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(["show", workflow])
    coloured = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")

    main(["show", workflow])

    assert "\x1b[36m" in coloured
    assert "\x1b[36m" not in capsys.readouterr().out


RUN = "20260102-030405-abcdef01"


@pytest.fixture
def failed_run(workflow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal with one run whose second step failed, in a folder with a pool file; gives the folder."""
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    workers = "".join(
        f'[[pool.workers]]\nname = "{name}"\nprovider = "scripted"\nretries = 0\n'
        f'options = {{ replies = ["{reply}"] }}\n'
        for name, reply in (("pia", ""), ("vic", "checked"), ("cy", "planned"))
    )
    Path("pool.toml").write_text(f'[pool]\nname = "toy"\n{workers}')
    assert main(["run", workflow, "-q", "Q", "--pool", "pool.toml"]) == 3
    return tmp_path


def drawn(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str) -> str:
    capfdbinary.readouterr()
    assert main(["show", *arguments]) == 0
    return capfdbinary.readouterr().out.decode()


@pytest.mark.parametrize("chosen", ["terminal", "mermaid", "svg"])
def test_every_format_shows_how_the_steps_of_a_run_stand(
    failed_run: Path, chosen: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    picture = drawn(capfdbinary, "--run", "last", "--format", chosen)

    states = [picture.rindex(state) for state in ("done · ", "failed · ", "waiting")]
    assert states == sorted(states)
    assert ": failed" in picture.split("Plan it.")[0]
    assert "the reply was empty" in picture
    assert "pia" in picture


def test_a_run_is_found_by_its_id_by_its_beginning_and_in_a_record_file(
    failed_run: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    newest = drawn(capfdbinary, "--run", "last", "--format", "mermaid")
    main(["runs", "show", "last", "--json"])
    record = capfdbinary.readouterr().out
    Path("record.json").write_bytes(record)
    run_id = Run.from_json(record).id

    for name in (run_id, run_id[:-4], "record.json"):
        assert drawn(capfdbinary, "--run", name, "--format", "mermaid") == newest


def test_a_record_file_needs_no_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "none"))
    step = StepRecord(0, 0, "ann", response="42", status="done", started=1.0, finished=3.5, list_usd=0.25)
    run = Run(RUN, Workflow((Step(0, "Say it."),)), "Q", (step,), "done", 1.0, 3.5, names=("speak",))
    (tmp_path / "record.json").write_text(run.to_json())

    picture = drawn(capfdbinary, "--run", str(tmp_path / "record.json"))

    assert f"run {RUN}: done" in picture
    assert "speak  ann" in picture
    assert "done · 2.5 s · $0.25" in picture
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", ["nope", "record.json"])
def test_an_unknown_run_or_a_file_that_is_no_record_is_one_line(
    failed_run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("record.json").write_text("{}")
    capsys.readouterr()

    code = main(["show", "--run", name])

    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert ("has no run 'nope'" in err) or ("not a run record" in err)


def test_a_run_without_any_journal_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "none"))

    code = main(["show", "--run", "last"])

    assert code == 2
    assert "nothing has been run yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["FILE", "--run", "last"], "not allowed with argument"), ([], "one of the arguments FILE --run is required")],
)
def test_either_a_file_or_a_run_is_drawn(
    workflow: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["show", *(workflow if argument == "FILE" else argument for argument in arguments)])

    assert stop.value.code == 2
    assert message in capsys.readouterr().err
