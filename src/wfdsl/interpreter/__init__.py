"""The interpreter: workflow, question and pool in; a run out.

One step of a run passes `running`, `execution`, `context`, `call` and the worker; the other modules serve these.
"""
