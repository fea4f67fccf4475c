"""A Ray cluster of nodes on this machine: prints its address, and obeys `kill` and `add`, a node each; ends with input.

The head has no CPU, so that nothing but the nodes runs trials.
"""

import sys

from ray.cluster_utils import Cluster

STORE_BYTES = 80_000_000


def main(count: int) -> None:
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False},
    )

    def add() -> None:
        nodes.append(cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES))

    nodes = []
    for _ in range(count):
        add()
    print(cluster.address, flush=True)
    try:
        for line in sys.stdin:
            if line.strip() == "kill":
                cluster.remove_node(nodes.pop(0), allow_graceful=False)
            else:
                add()
            print("done", flush=True)
    finally:
        cluster.shutdown()


main(int(sys.argv[1]))
