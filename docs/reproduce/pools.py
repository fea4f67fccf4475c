"""Pools: each question offers k of n workers, drawn at random."""

from reproduce import Table

TABLE = Table(
    "pools",
    "Pools of k of n workers",
    "average of four sets, open workers only",
    (
        ("all workers", "{conductor}", "-"),
        ("5 of 7", "{conductor}:pool=5", "almost 10 points above Claude Sonnet 4"),
        ("3 of 7", "{conductor}:pool=3", "-"),
        ("the strongest worker", "worker:{strong}", "-"),
        ("a random worker", "random-router", "-"),
    ),
    "As in the paper, the Conductor was trained on random pools, and is far above the strongest worker without it.",
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
