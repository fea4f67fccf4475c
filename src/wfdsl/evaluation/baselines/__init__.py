"""What Conductors are compared with: fixed workflows in `.wf` files, and routers, votes and draws as small policies.

`wfdsl.evaluation.baselines.catalogue` is the table of them all.
"""
