"""The code that runs inside the sandbox. These modules are sent there as code; nothing of them runs out here."""

READY = b"wfdsl sandbox ready\n"
"""What the interpreter inside writes first; all that follows comes from the code that was sent."""
