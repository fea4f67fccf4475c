"""wfdsl: the workflow language of LLM Conductors, its interpreter, tasks with gold answers, grading and evaluation."""

from wfdsl.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
