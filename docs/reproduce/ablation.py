"""Worker and text ablation: every step by one worker, and every worker told the same."""

from reproduce import Row, Table

TABLE = Table(
    "ablation",
    "Worker and text ablation",
    "MATH500, MMLU, RLPR, LCB; with one worker AIME25, BCB, GPQA-D",
    (
        Row("Conductor", "{conductor}", "89.33, 93.14, 42.63, 64.29; 93.3, 37.86, 87.5"),
        Row("every step by the strongest worker", "{conductor}:worker={strong}", "93.33, 33.50, 82.60"),
        Row("every worker told the same", "{conductor}:instruction=none", "88.5, 92.75, 41.95, 58.62"),
        Row("the strongest worker alone", "worker:{strong}", "90.8, 32.75, 82.3"),
        Row("three steps: plan, solve, check", "{here}/team.wf"),
        Row("these by the strongest worker", "{here}/team.wf:worker={strong}"),
        Row("these, every worker told the same", "{here}/team.wf:instruction=none"),
    ),
    "In the paper, all steps by GPT-5 are better than GPT-5 alone, and workers that are told the same lose a little. "
    "The Conductor here writes one call, so with one worker it is that worker, and its subtask says nothing. Workflows "
    "of three steps show both: roles are worth more here, because a worker takes its role from the subtask alone.",
)

if __name__ == "__main__":
    raise SystemExit(TABLE.run())
