"""Tasks as the rows that a training engine reads: `python rows.py verl gym/seven gym/seven train.parquet`."""

import json
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet

import wfdsl
from wfdsl_rl import Reward


def row_for(engine, row):
    """A row of `Reward.rows` in an engine's form; `extra_info` comes back to verl's and SkyRL's reward."""
    extra = {name: row[name] for name in ("task", "shown", "true")}
    if engine == "verl":
        found = {"data_source": "wfdsl", "reward_model": {"style": "rule", "ground_truth": row["task"]}}
    elif engine == "skyrl":
        found = {"env_class": "wfdsl", "reward_spec": {"method": "rule", "ground_truth": row["task"]}}
    else:  # slime, OpenRLHF
        return {"prompt": row["prompt"], "label": row["task"]}
    return {**found, "prompt": row["prompt"], "extra_info": extra}


def main(engine, pool, tasks, out):
    """Write the rows as JSON lines or, if the name ends in .parquet, as parquet."""
    rows = [row_for(engine, row) for row in Reward(pool, wfdsl.load_tasks(tasks)).rows()]
    if out.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), out)
    else:
        Path(out).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
