"""Train a Conductor with GRPO against the interpreter: stages, data, reward, checkpoints, export."""
