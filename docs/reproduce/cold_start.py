"""Cold start: is the form there before a training is scaled up?"""

from reproduce import Table, Training

TABLE = Table(
    "cold-start",
    "Cold start",
    "share of valid completions before scaling",
    (("after the cold start, 100 problems", "{conductor}", "more than 95 %"),),
    "A short SFT on random workflows, then GRPO on 108 problems, each with 8 completions. A completion that is cut is "
    "invalid there; the evaluation draws the likeliest tokens, and reads leniently.",
    limit=100,
    training=Training(layers=4, sft=15, grpo=9, every=3),
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
