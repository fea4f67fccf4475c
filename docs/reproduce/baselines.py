"""Against baselines: accuracy, tokens and cost of each (figures 4 and 5)."""

from reproduce import Table

TABLE = Table(
    "baselines",
    "Against baselines",
    "average of MATH500, MMLU, RLPR, LCB; tokens; dollars",
    (
        ("Conductor", "{conductor}", "72.35; 1,820; 0.0238"),
        ("the strongest worker", "worker:{strong}", "64.14"),
        ("the strongest worker, 5 times the context", "long-context:worker={strong}", "67.60"),
        ("self-reflection", "self-reflection:worker={strong}", "64.52"),
        ("majority of 5", "majority-vote:worker={strong}", "-"),
        ("mixture of agents", "moa", "62.13; 11,203; 0.0486"),
        ("MASRouter; k nearest questions here", "knn-router:validation={validation}", "56.89; 4,970; 0.0135"),
        ("Smoothie, dependent", "smoothie-dependent:validation={validation}", "56.48; 9,909; 0.0393"),
        ("RouterDC", "routerdc:validation={validation}", "52.41; 840; 0.0056"),
    ),
    "Routers are fitted on 960 questions of the gym's training split. The words of a question say its kind, so "
    "unlike in the paper a router of one call comes close to the Conductor. Replies are one sentence long, so a "
    "larger context changes nothing. Prices are made up.",
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
