"""wfdsl_rl: the reward of a completion, training with GRPO, and a gym of simulated workers."""

from wfdsl.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
