"""Worker and text ablation: every step by one worker, and every worker told the same."""

from reproduce import Table

TABLE = Table(
    "ablation",
    "Worker and text ablation",
    "MATH500, MMLU, RLPR, LCB; with one worker AIME25, BCB, GPQA-D",
    (
        ("Conductor", "{conductor}", "89.33, 93.14, 42.63, 64.29; 93.3, 37.86, 87.5"),
        ("every step by the strongest worker", "{conductor}:worker={strong}", "93.33, 33.50, 82.60"),
        ("every worker told the same", "{conductor}:instruction=none", "88.5, 92.75, 41.95, 58.62"),
        ("the strongest worker alone", "worker:{strong}", "90.8, 32.75, 82.3"),
        ("three steps: plan, solve, check", "{here}/team.wf", "-"),
        ("these, by the worker that plans", "{here}/team.wf:worker={planner}", "-"),
        ("the worker that plans alone", "worker:{planner}", "-"),
        ("these, every worker told the same", "{here}/team.wf:instruction=none", "-"),
    ),
    "As in the paper, all steps by the strongest worker are better than that worker alone, and most is lost where the "
    "Conductor does not choose the workers. The same text for all workers loses little in the paper and more here, "
    "where a worker takes its role from the text alone.",
    limit=400,
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
