"""`wfdsl show`: formats, files and errors, as somebody at the command line meets them."""

import io
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from wfdsl.cli.main import main
from wfdsl.interpreter.record import Run

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


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.svg", "<svg "), ("a.MMD", "flowchart"), ("a.txt", "3 steps · chain")],
)
def test_the_suffix_of_the_file_picks_the_format(workflow: str, tmp_path: Path, name: str, start: str) -> None:
    code = main(["show", workflow, "-o", str(tmp_path / name)])

    assert code == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_standard_input_is_read_and_the_terminal_drawing_is_the_default(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(COMPLETION.encode())))

    code = main(["show", "-"])

    assert code == 0
    assert "◉ step 2  worker 1  ← all  answer" in capfdbinary.readouterr().out.decode()


@pytest.mark.parametrize(
    ("name", "missing", "said"),
    [
        ("picture.xyz", "", ".png"),
        ("picture.bmp", "", ".png"),
        ("picture", "", ".png"),
        ("none/a.svg", "", "none/a.svg"),
        ("a.png", "resvg_py", "pip install"),
        ("a.pdf", "cairosvg", "pip install"),
    ],
)
def test_a_picture_that_cannot_be_written_is_one_line(
    workflow: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    missing: str,
    said: str,
) -> None:
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)

    code = main(["show", workflow, "-o", str(tmp_path / name)])

    err = capsys.readouterr().err
    assert (code, err.count("\n")) == (2, 1)
    assert said in err
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(("kind", "package"), [("png", "resvg_py"), ("pdf", "cairosvg")])
def test_a_png_is_twice_the_size_of_the_svg_and_a_pdf_has_its_size(
    workflow: str, tmp_path: Path, kind: str, package: str
) -> None:
    pytest.importorskip(package, exc_type=ImportError)
    for name in ("a.svg", f"a.{kind}"):
        assert main(["show", workflow, "-o", str(tmp_path / name)]) == 0

    svg, found = ET.parse(tmp_path / "a.svg").getroot(), (tmp_path / f"a.{kind}").read_bytes()
    assert found.startswith(b"\x89PNG" if kind == "png" else b"%PDF")
    if kind == "png":
        assert int.from_bytes(found[16:20]) == 2 * int(svg.attrib["width"])
    else:
        assert f"{0.75 * int(svg.attrib['height']):g}".encode() in found
        assert b"/Font" in found


def test_a_wrong_workflow_is_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text('model_id = [0]\nsubtasks = ["a"]\naccess_list = [[3]]\n')

    code = main(["show", str(path)])

    assert code == 1
    assert capsys.readouterr().out == ""


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
