"""Model size: what a smaller model learns by the same training."""

from reproduce import Table, Training

TABLE = Table(
    "model-size",
    "Model size",
    "7B and 3B",
    (
        ("the larger: 4 layers", "gym/seven:max_rounds=0", "7B writes better subtasks"),
        ("the smaller: 2 layers", "{conductor}", "3B comes to the same choice of workers"),
    ),
    "Both models are cut from the same one of 30 layers. The larger one, which ships, was trained on workflows of up "
    "to three steps; after the training of one step that the smaller one has, it had 73.0. As in the paper, the "
    "smaller one learns to choose workers too.",
    training=Training(layers=2, sft=200, grpo=50, every=10, preset="paper-3b"),
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
