"""Few-shot conditions: examples that are like the questions, other examples, and none."""

from reproduce import Table

LIKE = "examples={here}/gym-examples.toml"
TABLE = Table(
    "few-shot",
    "Few-shot conditions",
    "MATH500, MMLU, RLPR, LCB",
    (
        ("trained, no examples", "{conductor}:examples=none", "82.00, 92.69, 41.50, 54.86"),
        ("trained, other examples", "{conductor}:examples=ood", "89.33, 93.14, 42.63, 64.29"),
        ("trained, examples of the gym", "{conductor}:" + LIKE, "88.20, 92.31, 42.60, 58.32"),
        ("untrained model of 135 million weights, none", "local:examples=none", "-"),
        ("the same, other examples", "local:examples=ood", "-"),
        ("the same, examples of the gym", "local:" + LIKE, "-"),
    ),
    "The paper trains with the examples; here a Conductor that was trained with none is shown them at evaluation. For "
    "a model that was not trained, without a grammar and a second attempt, see the share of valid completions.",
    limit=60,
    options=("--grammar", "off", "--reasks", "0", "--max-rounds", "0"),
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
