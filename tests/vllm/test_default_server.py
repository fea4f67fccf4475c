"""A Conductor's model on vLLM with its default settings, asked with wfdsl's own worker from a pool file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.vllm.server import greedy
from wfdsl import Conductor, Pool, analyze
from wfdsl.cli.main import main
from wfdsl.conductor.settings import Grammar
from wfdsl.protocols import Call, Message, Reply, WorkerFailure
from wfdsl.workers.conformance import check_worker

QUESTION: Message = {
    "role": "user",
    "content": "A farm has 34 rows of 15 trees. 328 trees fall in a storm. How many trees still stand?",
}
GRAMMAR = Grammar(max_prose=20, max_subtask=20)


@pytest.fixture
def boss(vllm: str, tmp_path: Path) -> Path:
    """A pool file of one worker, as the guide to servers writes it."""
    return pool_file(tmp_path, vllm)


def pool_file(folder: Path, url: str, *lines: str) -> Path:
    fields = ('grammar_field = "structured_outputs"', "temperature = 1.0", "max_tokens = 40", "retries = 0", *lines)
    entry = ('name = "boss"', 'provider = "openai"', 'model = "conductor"', f'base_url = "{url}"')
    file = folder / "boss.toml"
    file.write_text("\n".join(("[[pool.workers]]", *entry, *fields, "[pool]")))
    return file


async def ask(file: Path, *messages: Message, **settings: Any) -> Reply:
    async with Pool.load(str(file)).open() as pool:
        return await pool.worker(0)(Call(messages or (QUESTION,), settings=settings))


async def completions(file: Path, count: int, grammar: Grammar) -> list[tuple[Reply, int, int]]:
    """Replies under the grammar, for pools of 1 to 7 workers and workflows of up to 1 to 5 steps."""
    pool = Pool.load(str(file))

    async def one(number: int) -> tuple[Reply, int, int]:
        workers, steps = 1 + number % 7, 1 + number % 5
        settings = {**grammar.call_settings(range(workers), steps, recursion=False), "seed": number}
        return await pool.worker(0)(Call((QUESTION,), settings=settings)), workers, steps

    async with pool.open():
        return await asyncio.gather(*(one(number) for number in range(count)))


async def test_all_of_200_completions_of_random_weights_are_valid_under_the_grammar(boss: Path) -> None:
    replies = await completions(boss, 200, GRAMMAR)

    valid = [analyze(r.text, pool=workers, max_steps=steps, profile="strict").ok for r, workers, steps in replies]
    assert sum(valid) == 200
    assert {reply.finish for reply, *_ in replies} == {"stop"}


async def test_a_conductor_with_random_weights_solves_a_question_of_the_gym(boss: Path, folder: Path) -> None:
    conductor = Conductor(Pool.load(str(boss)).entry(0), prompt=str(folder), grammar="on", max_rounds=0)

    solution = await conductor.solve(QUESTION["content"], Pool.load("gym/seven"), seed=1)

    assert solution.answer


@pytest.mark.parametrize("field", ["guided_grammar", "grammar", "ebnf"])
async def test_a_grammar_under_another_server_s_name_is_ignored(vllm: str, tmp_path: Path, field: str) -> None:
    file = pool_file(tmp_path, vllm)
    file.write_text(file.read_text().replace("structured_outputs", field))

    reply = await ask(file, grammar='root ::= "yes"')

    assert reply.text != "yes"


async def test_a_grammar_that_cannot_be_read_fails_once_and_names_the_setting(boss: Path) -> None:
    with pytest.raises(WorkerFailure, match="grammar_dialect") as raised:
        await ask(boss, grammar="start: nothing", max_tokens=8)

    assert not raised.value.retryable


async def test_llguidance_s_dialect_is_an_internal_error_that_names_the_setting(boss: Path) -> None:
    settings = Grammar(dialect="llguidance").call_settings(range(2), 1, recursion=False)

    with pytest.raises(WorkerFailure, match=r"HTTP 500: .*grammar_dialect"):
        await ask(boss, **settings)


async def test_the_chat_template_gives_the_tokens_that_training_gave(boss: Path, folder: Path) -> None:
    talk: tuple[Message, ...] = (
        {"role": "system", "content": "Be brief."},
        QUESTION,
        {"role": "assistant", "content": 'model_id = [0]\nsubtasks = ["x"]\naccess_list = [[]]\n'},
        {"role": "user", "content": "510"},
    )
    reply = await ask(boss, *talk, temperature=0.0, max_tokens=24)

    text, prompt_tokens = greedy(folder, talk, 24)
    assert (reply.text, reply.usage.input_tokens) == (text, prompt_tokens)


async def test_it_keeps_what_every_worker_promises(boss: Path) -> None:
    async with Pool.load(str(boss)).open() as pool:
        await check_worker(pool.worker(0))


async def test_64_calls_at_once_each_get_their_own_reply(boss: Path) -> None:
    pool = Pool.load(str(boss))

    async def own(call: Call) -> Reply:
        word = call.messages[0]["content"]
        return await pool.worker(0)(Call(call.messages, settings={"grammar": f'root ::= "{word}"'}))

    async with pool.open():
        words = [f"word {number}" for number in range(64)]
        replies = await asyncio.gather(*(own(Call(({"role": "user", "content": word},))) for word in words))

    assert [each.text for each in replies] == words


async def test_a_prompt_seen_before_is_read_from_the_cache_and_the_reply_is_the_same(boss: Path) -> None:
    long: Message = {"role": "user", "content": "How many of the 34 trees still stand? " * 60}

    first, second = [await ask(boss, long, temperature=0.0) for _ in range(2)]

    assert first.usage.cached_tokens == 0
    assert second.usage.cached_tokens > 0.5 * second.usage.input_tokens
    assert second.text == first.text


def test_pools_init_and_check_work_on_it(vllm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pool.toml"

    assert main(["pools", "init", "--base-url", vllm, "-o", str(file)]) == 0
    assert main(["pools", "check", str(file)]) == 0
    assert "ok" in capsys.readouterr().out
    assert Pool.load(str(file)).entry(0).options == {"context": 8192}


async def test_a_prompt_longer_than_the_context_fails_once(boss: Path) -> None:
    with pytest.raises(WorkerFailure, match="8192") as raised:
        await ask(boss, {"role": "user", "content": "1 " * 9000})

    assert not raised.value.retryable
