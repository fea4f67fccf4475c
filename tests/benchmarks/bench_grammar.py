"""An untrained SmolLM2-135M as Conductor: valid workflows without and with the exported grammar, and what it costs.

Run with `python -m tests.benchmarks.bench_grammar --samples 200`. Samples go round pool sizes 1 to 7 and step limits 1
to 5. The first few are asked for twice, free and under the grammar, one after the other: both meet the same load.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import openai

from tests.benchmarks.measuring import show
from wfdsl import analyze
from wfdsl.language.constrained import gbnf, max_tokens_for
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.local import LocalServer, ServedModel, model_file

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PROSE, MAX_SUBTASK = 60, 60  # characters; short, so that a sample takes a second or two
FREE_TOKENS = 256  # for a completion without the grammar, which need not end by itself
COMBINATIONS = [(pool_size, max_steps) for max_steps in range(1, 6) for pool_size in range(1, 8)]
FEW = 10  # samples, unless asked for more: a minute or two
ORDER = 11  # steps through the 35 combinations, so that a few samples already meet all sizes and limits
PAIR_TOKENS = 32  # in which hardly any completion ends
QUESTIONS = (
    "Sam reads 20 pages a day. How many pages does he read in 5 days?",
    "Write a short poem about the sea, then improve it.",
    "Is 1001 a prime number?",
)
PROMPT = """\
Answer the question by a workflow of at most {max_steps} steps. The workers are numbered: {workers}.
Write three lists of the same length: model_id (which worker), subtasks (what it is asked), access_list (which earlier \
steps it sees: [] or "all" or a list of numbers). For example:
model_id = [0]
subtasks = ["Solve the problem and check the result."]
access_list = [[]]
Question: {question}
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion of the model."""

    max_steps: int
    constrained: bool
    text: str
    valid: bool
    cut: bool
    tokens: int
    ms_per_token: float


async def samples(count: int, free: int) -> tuple[list[Sample], list[float]]:
    """So many completions under the grammar, and the first few of them asked for without it as well; what it costs."""
    server = LocalServer(ServedModel(str(model_file(WorkerEntry(name="conductor", provider="local")))))
    try:
        await server.connection()
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as client:
            kinds = [(index, kind) for index in range(count) for kind in (False, True) if kind or index < free]
            taken = [await sample(client, index, constrained=kind) for index, kind in kinds]
            return taken, [await overhead(client, index) for index in range(free)]
    finally:
        await server.aclose()


async def overhead(client: openai.AsyncOpenAI, index: int) -> float:
    """What the grammar adds to a token, over equally many tokens with and without it. Units: milliseconds."""
    free = await sample(client, index, constrained=False, most=PAIR_TOKENS)
    under = await sample(client, index, constrained=True, most=PAIR_TOKENS)
    return under.ms_per_token - free.ms_per_token


async def sample(client: openai.AsyncOpenAI, index: int, *, constrained: bool, most: int | None = None) -> Sample:
    """The completion of this index; the index is its seed as well. `most` tokens replace its usual limit."""
    pool_size, max_steps = COMBINATIONS[index * ORDER % len(COMBINATIONS)]
    bounds: dict[str, Any] = {"max_prose": MAX_PROSE, "max_subtask": MAX_SUBTASK}
    workers = range(pool_size)
    prompt = PROMPT.format(
        max_steps=max_steps, workers=", ".join(map(str, workers)), question=QUESTIONS[index % len(QUESTIONS)]
    )
    reply = await client.chat.completions.create(
        model="local",
        messages=[{"role": "user", "content": prompt}],
        max_tokens=most or (max_tokens_for(workers, max_steps, **bounds) if constrained else FREE_TOKENS),
        temperature=1.0,
        seed=index,
        extra_body={"grammar": gbnf(workers, max_steps, **bounds)} if constrained else None,
    )
    text = reply.choices[0].message.content or ""
    timings: dict[str, float] = (reply.model_extra or {})["timings"]
    return Sample(
        max_steps,
        constrained,
        text,
        analyze(text, pool=pool_size, max_steps=max_steps, profile="strict").ok,
        reply.choices[0].finish_reason == "length",
        int(timings["predicted_n"]),
        timings["predicted_ms"] / timings["predicted_n"],
    )


def main(count: int = FEW, free: int = FEW) -> None:
    """Print the table, and what the grammar let through that is not valid: there should be nothing."""
    taken, added_ms = asyncio.run(samples(count, free))
    headings = "completions", "max_steps", "samples", "cut", "strictly valid", "tokens", "ms per token"
    show("SmolLM2-135M, untrained, temperature 1", headings, _rows(taken))
    low, middle, high = statistics.quantiles(added_ms, n=4)
    print(
        f"llama.cpp's overhead per token, over {len(added_ms)} pairs: median {middle:.1f} ms ({low:.1f} to {high:.1f})"
    )
    for sample in taken:
        if sample.constrained and not sample.valid:
            print(f"{'CUT' if sample.cut else 'INVALID'} with max_steps {sample.max_steps}: {sample.text!r}")


def _rows(taken: list[Sample]) -> Iterator[tuple[str, ...]]:
    for constrained in (False, True):
        kind = [sample for sample in taken if sample.constrained is constrained]
        for max_steps in range(1, 6):
            yield _row(constrained, str(max_steps), [sample for sample in kind if sample.max_steps == max_steps])
        yield _row(constrained, "1 to 5", kind)


def _row(constrained: bool, max_steps: str, group: list[Sample]) -> tuple[str, ...]:
    kind = "grammar" if constrained else "free"
    if not group:
        return kind, max_steps, "0", *("-",) * 4
    return (
        kind,
        max_steps,
        str(len(group)),
        str(sum(sample.cut for sample in group)),
        f"{sum(sample.valid for sample in group)} ({sum(sample.valid for sample in group) / len(group):.1%})",
        f"{statistics.median(sample.tokens for sample in group):.0f}",
        f"{statistics.median(sample.ms_per_token for sample in group):.1f}",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=FEW, help="under the grammar (default: %(default)s)")
    parser.add_argument("--free", type=int, default=FEW, help="of them, how many also without it, from 2")
    args = parser.parse_args()
    main(args.samples, args.free)
