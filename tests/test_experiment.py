"""The configuration file: five tables, what is set over them, and errors that say where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import conductor_name
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment, RunSettings, ServeSettings, Setting, read_experiment
from wfdsl.interpreter.budget import Budget
from wfdsl.workers.pool import Pool

pytestmark = pytest.mark.usefixtures("folder")

WORKERS = '[[pool.workers]]\nname = "a"\nprovider = "scripted"\noptions = { replies = ["x"] }\n'
WHOLE = f"""
[pool]
name = "mine"
{WORKERS}
[conductor]
model = "openai:m"
max_rounds = 2
without = ["small"]
[budget]
usd = 0.5
calls = 40
[run]
seed = 7
journal = false
[train]
learning_rate = 1e-6
[train.lora]
rank = 16
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, name: str = "exp.toml") -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)
    return name


def test_a_file_gives_all_five_tables() -> None:
    found = read_experiment(write(WHOLE))

    assert found.pool is not None
    assert (found.pool.name, found.pool.names, found.pool_name) == ("mine", ("a",), str(Path("exp.toml").absolute()))
    assert found.conductor == ConductorConfig(model="openai:m", max_rounds=2, without=("small",))
    assert found.budget == Budget(usd=0.5, calls=40)
    assert found.run == RunSettings(seed=7, journal=False)
    assert found.train == {"learning_rate": 1e-6, "lora": {"rank": 16}}


def test_without_a_file_everything_is_as_usual() -> None:
    found = read_experiment()

    assert found == Experiment()
    assert (found.pool, found.conductor.model, found.budget, found.train) == (None, None, Budget(), {})
    assert found.with_pool()[0].name == found.with_pool()[1] == "local"


def test_settings_go_before_the_file_and_later_ones_before_earlier_ones() -> None:
    path = write(WHOLE)

    flag = Setting("conductor.max_rounds", 4, "--max-rounds")
    found = read_experiment(path, ["conductor.max_rounds=3", "budget.usd=2", "train.lora.rank=8", flag])

    assert (found.conductor.max_rounds, found.budget.usd, found.budget.calls) == (4, 2.0, 40)
    assert found.train["lora"] == {"rank": 8}


@pytest.mark.parametrize(
    ("assignment", "table", "key", "value"),
    [
        ("conductor.max_rounds=0", "conductor", "max_rounds", 0),
        ("conductor.prompt=tiny", "conductor", "prompt", "tiny"),
        ('conductor.prompt="tiny"', "conductor", "prompt", "tiny"),
        ("conductor.prompt=7", "conductor", "prompt", "7"),
        ("conductor.model=openai:gpt-5", "conductor", "model", "openai:gpt-5"),
        ("conductor.without=small", "conductor", "without", ("small",)),
        ('conductor.without=["small", "b"]', "conductor", "without", ("small", "b")),
        ("conductor.shuffle=true", "conductor", "shuffle", True),
        ("conductor.grammar=on", "conductor", "grammar", "on"),
        (" conductor . call_factor = 1.5 ", "conductor", "call_factor", 1.5),
        ("budget.tokens=1_000", "budget", "tokens", 1000),
        ("run.seed=-3", "run", "seed", -3),
        ("run.timeout_s=30", "run", "timeout_s", 30.0),
        ("conductor.default=a=b.wf", "conductor", "default", "a=b.wf"),
        ("conductor.prompt=1\nrounds = 2", "conductor", "prompt", "1\nrounds = 2"),
    ],
)
def test_a_value_is_written_as_in_toml_and_what_is_none_is_a_text(
    assignment: str, table: str, key: str, value: Any
) -> None:
    found = read_experiment(None, [assignment])

    assert getattr(getattr(found, table), key) == value


PROBLEMS = [
    ("[conductor]\nmax_rouns = 1", 'exp.toml: conductor has no key "max_rouns". Did you mean max_rounds?'),
    ("[conducter]", 'exp.toml has no key "conducter". Did you mean conductor?'),
    ("conductor = 5", "exp.toml: conductor must be a table, not int"),
    ("[conductor]\nmax_rounds = -1", "exp.toml: conductor.max_rounds must be at least 0 (got -1)"),
    ("[conductor]\nwithout = [1]", "exp.toml: conductor.without must be a text"),
    ('[conductor]\napi_key = "sk-1"', "set api_key_env to the name of an environment variable"),
    ("[pool]\nuse = 5", "exp.toml: pool.use is the name or the file of a pool, not int"),
    ('[pool]\nuse = "locl"', 'exp.toml: there is no pool "locl"'),
    ('[pool]\nuse = "local"\nname = "x"', "exp.toml: pool: `use` takes a whole pool as it is: leave out name"),
    ('[pool]\nuse = "exp.toml"', "exp.toml: pool.use names exp.toml, which only uses another pool: name that one"),
    ("[pool]\nuze = 5", 'exp.toml: pool has no key "uze". Did you mean use'),
    ("= 5", "exp.toml: not a TOML file"),
    (f"[run]\nseed = {'9' * 5000}", "exp.toml: not a TOML file"),
    ("a = " + "[" * 5000, "exp.toml: not a TOML file"),
]


@pytest.mark.parametrize(("text", "message"), PROBLEMS)
def test_a_wrong_file_says_where_what_and_what_was_meant(text: str, message: str) -> None:
    path = write(text)

    with pytest.raises(UsageError) as refused:
        read_experiment(path)

    assert message in str(refused.value)
    assert str(refused.value).startswith("exp.toml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("conductor.max_rounds=two", "--set conductor.max_rounds must be a whole number"),
        (
            "conductor.max_rouns=2",
            '--set conductor.max_rouns: [conductor] has no key "max_rouns". Did you mean max_rounds?',
        ),
        ("condutor.max_rounds=2", '--set condutor.max_rounds: there is no table "condutor". Did you mean conductor?'),
        ("conductor.max_rounds.x=2", "--set conductor.max_rounds.x: conductor.max_rounds is not a table"),
        ("rounds=2", "--set 'rounds=2': write TABLE.KEY=VALUE"),
        ("conductor.max_rounds", "--set 'conductor.max_rounds': write TABLE.KEY=VALUE"),
        ("budget.usd=nan", "--set budget.usd must be a finite number (got nan)"),
        ("pool.name=x", '--set pool.name: the pool "x" has no workers'),
        ("pool.use=nobody", 'there is no pool "nobody"'),
    ],
)
def test_a_wrong_setting_is_named_and_not_the_file(assignment: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_experiment(None, [assignment])

    assert str(refused.value).startswith(message)


def test_a_pool_is_named_in_place_of_being_written() -> None:
    write(f'[pool]\nname = "there"\n{WORKERS}', "sub/pool.toml")

    beside = read_experiment(write('[pool]\nuse = "pool.toml"', "sub/exp.toml"))
    shipped = read_experiment(write('[pool]\nuse = "local"'))
    loaded = Pool.load("sub/exp.toml")

    assert beside.pool is not None
    assert beside.pool.name == loaded.name == "there"
    assert shipped.pool is not None
    assert (shipped.pool.name, shipped.pool_name) == ("local", str(Path("exp.toml").absolute()))


def test_a_pool_that_is_named_replaces_that_of_the_file_and_a_file_alone_does_not_describe_one_with_settings() -> None:
    path = write(WHOLE)

    named = read_experiment(path, ["pool.use=local"])
    found = read_experiment(path, ["pool.max_reply_chars=10", "pool.defaults.temperature=0.5"])

    assert named.pool is not None
    assert (named.pool.name, named.pool_name) == ("local", "local")
    assert found.pool is not None
    assert (found.pool.settings.max_reply_chars, found.pool.entry(0).temperature) == (10, 0.5)
    assert found.pool_name is None


@pytest.mark.parametrize("setting", ["pool.workers.0.model=x", "pool.max_reply_chars.x=3"])
def test_what_cannot_be_set_in_a_pool_is_refused(setting: str) -> None:
    path = write(f"[pool]\nmax_reply_chars = 5\n{WORKERS}")

    with pytest.raises(UsageError, match=f"^--set {setting.partition('=')[0]}: "):
        read_experiment(path, [setting])


def test_a_named_pool_and_settings_of_another_exclude_each_other() -> None:
    with pytest.raises(UsageError, match=r"--set pool\.name: --pool takes a whole pool as it is"):
        read_experiment(None, ["pool.name=x", Setting("pool.use", "local", "--pool")])


def test_paths_in_a_file_start_from_the_file_those_of_settings_from_here_and_names_stay_names() -> None:
    Path("tiny").mkdir()
    write("x", "sub/plan.wf")
    write("x", "sub/mine.toml")
    write("x", "sub/checkpoint/config.json")
    path = write(
        '[conductor]\nmodel = "transformers:./checkpoint"\nprompt = "mine.toml"\ndefault = "plan.wf"\n', "sub/exp.toml"
    )

    found = read_experiment(path, ["conductor.examples=sub/mine.toml"]).conductor

    assert found.model == f"transformers:{Path('sub/checkpoint')}"
    assert (found.prompt, found.default) == (str(Path("sub/mine.toml")), str(Path("sub/plan.wf")))
    assert found.examples == "sub/mine.toml"
    named = read_experiment(write('[conductor]\nprompt = "tiny"\nmodel = "openai:org/model-1.5"')).conductor
    assert (named.prompt, named.model) == ("tiny", "openai:org/model-1.5")


def test_a_pool_may_have_its_own_conductor_which_any_other_source_overrides() -> None:
    write("x", "sub/ours.wf")
    workers = '[pool]\nconductor = "ours.wf"\n[[pool.workers]]\nname = "a"\nprovider = "openai"\nmodel = "m"\n'
    pool = write(workers, "sub/pool.toml")
    theirs = write(f'{workers}[conductor]\nmodel = "openai:theirs"\nmax_rounds = 2\n', "sub/both.toml")

    def chosen(*sources: Any) -> str:
        found = read_experiment(*sources)
        return conductor_name(found.conductor, found.pool)

    assert chosen(None, [f"pool.use={pool}"]) == str(Path("sub/ours.wf"))
    assert chosen(pool) == str(Path("sub/ours.wf"))
    assert chosen(theirs) == "openai:theirs"
    assert chosen(pool, ["conductor.model=local"]) == "local"
    assert chosen(pool, ["pool.conductor=7"]) == "7"


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_a_file_that_cannot_be_read_is_named(name: str, folder: Path) -> None:
    with pytest.raises(UsageError, match=f"^{name}: cannot read this configuration file: "):
        read_experiment(name)


def test_a_command_s_own_defaults_are_below_the_file_and_the_settings(tmp_path: Path) -> None:
    own = {"serve": {"port": 8700, "max_requests": 4096, "drain_s": 5.0}}
    usual = ServeSettings()
    file = tmp_path / "wfdsl.toml"
    file.write_text(f"[serve]\nmax_requests = {usual.max_requests}\n")

    found = read_experiment(file, [f"serve.port={usual.port}"], defaults=own).serve

    assert (found.port, found.max_requests, found.drain_s) == (usual.port, usual.max_requests, 5.0)
    assert read_experiment(defaults=own).serve.port == 8700
