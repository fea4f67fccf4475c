"""Recursion depth: what each further round gains and costs."""

from reproduce import Table

TABLE = Table(
    "recursion",
    "Recursion depth",
    "AIME25, BigCodeBench, GPQA-D and their average",
    (
        ("no further round", "{conductor}:max_rounds=0", "66.67, 37.8, 81.31; 61.93"),
        ("at most 1", "{conductor}:max_rounds=1", "66.67, 40.0, 82.32; 63.00"),
        ("at most 2", "{conductor}:max_rounds=2", "-"),
        ("at most 3", "{conductor}:max_rounds=3", "-"),
    ),
    "The paper trains recursion for 20 iterations and keeps calls below twice those of round 0; the curve over the "
    "depth is open. The Conductor here was trained for 60, and keeps nearly all answers: its first rounds have checks.",
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
