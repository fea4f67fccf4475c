"""Grading: extraction of final answers, comparison with gold answers, and the sandbox that runs programs."""
