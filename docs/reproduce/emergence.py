"""Strategy emergence: topologies, roles and diversity over a training, and how they go with accuracy (figure 3)."""

from reproduce import Table, Training

TABLE = Table(
    "emergence",
    "Emergence of strategies",
    "steps of a workflow, without a penalty on length",
    (("after training", "{conductor}", "3 on average; MMLU 1 to 2, LiveCodeBench 3 to 4"),),
    "The analysis of strategies is open, says the paper. A training of up to three steps (140 iterations, 80 % right "
    "at the end) goes from 77 to 100 % chains; its correlation with pattern bits is -0.82, with steps +0.85.",
    training=Training(layers=4, sft=200, grpo=50, every=10),
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
