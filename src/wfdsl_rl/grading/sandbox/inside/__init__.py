"""What runs inside the sandbox. These modules are sent there as text; nothing of them runs out here."""

READY = b"wfdsl sandbox ready\n"
"""What is said once the walls stand; all that follows comes from what was sent."""
