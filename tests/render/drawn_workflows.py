"""Workflows that are hard to draw, for every format's tests."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from wfdsl.language.tree import Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.render.model import Options
from wfdsl.render.status import StepStatus

ODD_TEXTS = (
    'Say "hi" <b>&amp;</b> `code` [x] {y} (z) end',
    "%%{init: {}}%% graph TD; a-->b | c\n%% a comment",
    "1. first\n\n- second\r\n* third\t# fourth",
    "\x1b[31mred\x1b[0m \x00 \x07 \x7f \x85",
    "back\\slash \\n \\N \\l \\",
    "日本語の長い文章を書いてください。これはとても長いので折り返す必要があります。",
    "اكتب الحل خطوة بخطوة \u202e turned \u2066 around",
    "👩‍👩‍👧‍👦 e\u0301 Z̸̢̛a̶l̵ \ud800 \ufffe \U0001ffff #quot; ﬂ°°35¶ß",
    "]]> <!-- --> <script>alert(1)</script> &#0; &unknown; ${x} $(y)",
    "x" * 500,
    " . ",
)
MIXED = Workflow(
    (
        Step(0, "Make a plan."),
        Step(1, "Solve it by algebra.", (0,)),
        Step(2, "Solve it by trying small cases."),
        Step(3, "Look for a counterexample.", (0,)),
        Step(4, "Compare both solutions.", (1, 2), 2),
        Step("best", "Give the answer.", "all"),
    )
)
"""Step 3 is live only through "all"."""
DEAD = Workflow((Step(0, "Plan."), Step(1, "Nobody reads this.", (0,)), Step(2, "Answer.", (0,))))
_ODD_STEPS = [Step(f"worker {text}", text, tuple(range(i))[-2:]) for i, text in enumerate(ODD_TEXTS)]
ODD = Workflow((*_ODD_STEPS, Step(0, "Answer.", "all")))
ODD_OPTIONS: Options = {
    "names": [*ODD_TEXTS, "end"],
    "title": " ".join(ODD_TEXTS),
    "description": " ".join(ODD_TEXTS),
    "workers": {0: ODD_TEXTS[0]},
    "status": {i: StepStatus("failed", 1.0, 2.0, text, text) for i, text in enumerate(ODD_TEXTS)},
}

_texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=60), st.sampled_from(["Solve.", "Check."]))


@st.composite
def workflows(draw: st.DrawFn, max_steps: int = 12) -> Workflow:
    """Any workflow, with any text in it."""
    steps = []
    for index in range(draw(st.integers(1, max_steps))):
        listed = st.sets(st.integers(0, index - 1)).map(lambda seen: tuple(sorted(seen))) if index else st.just(())
        access: Access = draw(st.one_of(listed, listed, st.just("all")))
        worker = draw(st.one_of(st.integers(0, 9), _texts))
        steps.append(Step(worker, draw(_texts), access, draw(st.sampled_from([None, None, 1]))))
    return Workflow(tuple(steps))


def random_workflow(seed: int, most_steps: int = 60) -> Workflow:
    """A workflow of one of several shapes: sparse, dense, in layers, with steps that see all, of copies, or mixed."""
    random = Random(seed)
    shape = random.choice(["sparse", "dense", "layers", "all", "copies", "mixed"])
    count = random.randint(1, most_steps)
    likely = random.choice([0.1, 0.3, 0.7])
    wide = random.choice([3, 8, 12])
    steps: list[Step] = []
    for index in range(count):
        some = tuple(each for each in range(index) if random.random() < likely)
        layer = tuple(each for each in some if index // wide - 1 == each // wide)
        by_shape: dict[str, Access] = {
            "sparse": tuple(sorted({random.randrange(index) for _ in range(random.randint(0, 2))} if index else ())),
            "dense": some,
            "layers": layer,
            "all": random.choice(["all", some]),
            "copies": () if index < count * 0.8 else some,
            "mixed": random.choice(["all", (), tuple(range(index)), tuple(range(index))[-2:]]),
        }
        text = random.choice(["Solve.", "Check.", f"Do {index}."])
        steps.append(Step(random.randrange(3), text, by_shape[shape], random.choice([None, None, None, 1])))
    return Workflow(tuple(steps))


@st.composite
def options(draw: st.DrawFn, workflow: Workflow) -> Options:
    """Any options for a workflow."""
    count = len(workflow)
    states = st.sampled_from(["waiting", "running", "done", "failed", "pruned"])
    amounts = st.one_of(st.none(), st.floats(0, 1e6))
    return {
        "names": draw(st.none() | st.lists(_texts, min_size=count, max_size=count)),
        "title": draw(_texts),
        "description": draw(_texts),
        "workers": draw(st.dictionaries(st.integers(0, 9), _texts, max_size=3)),
        "opened": draw(st.sets(st.integers(0, 5))),
        "conductors": draw(st.frozensets(st.integers(0, 9), max_size=2)),
        "status": draw(
            st.dictionaries(
                st.integers(0, count - 1), st.builds(StepStatus, states, amounts, amounts, _texts, _texts), max_size=4
            )
        ),
    }
