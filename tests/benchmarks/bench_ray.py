"""`wfdsl eval --engine ray` on three nodes on this machine: what it adds to a task, and its speed against one node.

Run with `python -m tests.benchmarks ray`, after `make engines`.
"""

from __future__ import annotations

import json
import os
import subprocess

from tests.engines import ENVIRONMENTS, HERE


def main() -> None:
    """Print the figures."""
    python = ENVIRONMENTS / "ray/bin/python"
    if not python.exists():
        print("ray: not measured; it needs Ray in an environment of its own: make engines")
        return
    env = {**os.environ, "RAY_worker_niceness": "0", "RAY_raylet_start_wait_time_s": "240"}
    command = [str(python), str(HERE / "programs/ray_figures.py")]
    said = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = json.loads(said.splitlines()[-1])
    local, on_ray = found["local_ms"], found["ray_ms"]
    print(f"a task of 50 ms, one at a time: {local:.2f} ms in this process, {on_ray:.2f} ms on Ray", end="")
    print(f" ({on_ray - local:+.2f} ms)")
    print(f"three nodes, each 4 tasks of 200 ms at a time: {found['speedup']:.2f} x the speed of one node")
