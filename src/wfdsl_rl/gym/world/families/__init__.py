"""Families of generated questions with computed answers.

Every question is one of a few wordings with its gaps filled in. An answer depends on the text of its question alone, so
that a simulated worker that is shown a question knows what is true, and what would be a plausible mistake.
"""

from wfdsl_rl.gym.world.families.catalogue import FAMILIES, SPLITS, domain_of, draw, recognise, summary_of

__all__ = ["FAMILIES", "SPLITS", "domain_of", "draw", "recognise", "summary_of"]
