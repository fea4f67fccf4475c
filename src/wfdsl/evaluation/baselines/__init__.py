"""What Conductors are compared with: fixed workflows in `.wf` files, and routers, votes and draws as small policies."""
