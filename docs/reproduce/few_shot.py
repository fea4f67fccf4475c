"""Few-shot conditions: examples that are like the questions, other examples, and none."""

from reproduce import Row, Table

LOCAL = "an untrained model of 135 million weights"
LIKE = "examples={here}/gym-examples.toml"
TABLE = Table(
    "few-shot",
    "Few-shot conditions",
    "MATH500, MMLU, RLPR, LCB",
    (
        Row("trained, no examples", "{conductor}:examples=none", "82.00, 92.69, 41.50, 54.86"),
        Row("trained, other examples", "{conductor}:examples=ood", "89.33, 93.14, 42.63, 64.29"),
        Row(
            "trained, examples like the questions",
            "{conductor}:" + LIKE,
            "88.20, 92.31, 42.60, 58.32",
        ),
        Row(f"{LOCAL}, none", "local:examples=none"),
        Row("the same, other examples", "local:examples=ood"),
        Row("the same, like the questions", "local:" + LIKE),
    ),
    "The paper trains with the examples; here they are only shown at evaluation, to a Conductor that was trained with "
    "none, so it hardly looks at them. For a model that was not trained, without a grammar and a second attempt, "
    "examples give the form: see the share of valid completions.",
    limit=60,
    options=("--grammar", "off", "--reasks", "0", "--max-rounds", "0"),
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
