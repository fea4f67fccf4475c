"""Training a Conductor: warm-up, GRPO against the interpreter, random pools, recursion."""
