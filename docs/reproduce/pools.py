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
    "The paper finetunes on random pools. The Conductor here has only seen the whole pool, and names workers that are "
    "not offered.",
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
