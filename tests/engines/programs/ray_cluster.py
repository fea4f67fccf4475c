"""A Ray cluster of nodes on this machine: prints its address, then obeys lines: `kill N` kills a node; ends with input.

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
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES) for _ in range(count)]
    print(cluster.address, flush=True)
    try:
        for line in sys.stdin:
            number = int(line.split()[1])
            cluster.remove_node(nodes[number], allow_graceful=False)
            print("killed", number, flush=True)
    finally:
        cluster.shutdown()


main(int(sys.argv[1]))
