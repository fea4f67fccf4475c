"""The interpreter: workflow, question and pool in; a run out.

Each concern is a module of its own that wraps a call; the executor only decides when a step starts.
"""
