"""What a Conductor is compared with: workflows as `.wf` files, and small policies."""
