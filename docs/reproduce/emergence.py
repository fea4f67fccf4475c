"""Strategy emergence: topologies, roles and diversity over a training, and how they go with accuracy (figure 3)."""

from reproduce import Table, Training

TABLE = Table(
    "emergence",
    "Emergence of strategies",
    "steps of a workflow, without a penalty on length",
    (("after training", "{conductor}", "3 on average; MMLU 1 to 2, LiveCodeBench 3 to 4"),),
    "The paper shows topologies over training, and calls their analysis open.",
    training=Training(layers=4, sft=200, grpo=70, every=10),
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
