"""Is an answer right? Extraction, equality by kind, and the sandbox that runs programs."""
