"""Few-shot conditions: examples that are like the questions, other examples, and none."""

from reproduce import Table

TABLE = Table(
    "few-shot",
    "Few-shot conditions",
    "MATH500, MMLU, RLPR, LCB",
    (
        ("trained, no examples", "{conductor}:examples=none", "82.00, 92.69, 41.50, 54.86"),
        ("trained, other examples", "{conductor}:examples=ood", "89.33, 93.14, 42.63, 64.29"),
        ("trained, examples of the gym", "{conductor}:examples={here}/gym-examples.toml", "88.20, 92.31, 42.60, 58.32"),
    ),
    "The paper trains with the examples; here a Conductor that was trained with none is shown them at evaluation, "
    "which confuses it: fewer of its workflows are valid. An untrained model of 135 million weights wrote no valid "
    "workflow without a grammar, with no examples, these or those (60 questions each).",
    options=("--set", "conductor.reasks=0"),
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
