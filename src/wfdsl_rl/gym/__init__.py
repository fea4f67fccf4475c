"""The gym: simulated workers and generated questions whose answers are true.

`make` gives tasks, `wfdsl.Pool.load("gym/paper7")` the workers that know them. Nothing here is a measurement of a real
model, and whatever shows results of the gym says "simulated".
"""

from wfdsl_rl.gym.world.making import make

__all__ = ["make"]
