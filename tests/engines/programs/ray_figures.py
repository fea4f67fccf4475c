"""What a cluster of three nodes on this machine adds to trials that wait, and how much faster it is than one node."""

import asyncio
import json
import sys
import time
from functools import partial

import ray
from ray.cluster_utils import Cluster

from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.evaluation.evaluate import evaluate
from wfdsl.evaluation.ray_engine import evaluate_on_ray
from wfdsl.evaluation.trials import Evaluation
from wfdsl.language.workflow import Step, Workflow
from wfdsl.tasks.task import Task
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

STORE_BYTES = 80_000_000


def evaluation(delay_s, count=0):
    options = {"replies": ["yes"], "repeat": True, "delay_s": delay_s}
    pool = Pool([WorkerEntry(name="w", provider="scripted", model="w", options=options)])
    tasks = [Task(id=f"t{number}", question="Q?", gold="yes", kind="text", source="s") for number in range(count)]
    return Evaluation(policies={"one": WorkflowPolicy(Workflow((Step(0, "Solve."),)))}, tasks=tasks, pool=pool, id="e")


async def seconds(delay_s, count, parallel, nodes):
    """Seconds of an evaluation in this process (0 nodes) or on nodes."""
    what, found = evaluation(delay_s, count), []
    began = time.perf_counter()
    if nodes:
        build = partial(evaluation, delay_s)
        await evaluate_on_ray(what, build, keep=found.append, nodes=nodes, parallel=parallel, journal=False)
    else:
        await evaluate(what, keep=found.append, concurrency=parallel)
    total = time.perf_counter() - began
    assert len({trial.key for trial in found}) == len(found) == count
    return total


def each(delay_s, few, many, parallel, nodes):
    """Seconds for a trial more, which the start of processes is no part of."""
    times = [asyncio.run(seconds(delay_s, count, parallel, nodes)) for count in (few, many)]
    return (times[1] - times[0]) / (many - few)


def main():
    head = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(3):
        cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
    try:
        local, one = (each(0.05, 40, 440, 1, nodes) for nodes in (0, 1))
        single, three = (each(0.2, 60, 960, 4, nodes) for nodes in (1, 3))
    finally:
        ray.shutdown()
        cluster.shutdown()
    print(json.dumps({"local_ms": local * 1000, "ray_ms": one * 1000, "speedup": single / three}))


if __name__ == "__main__":
    sys.exit(main())
