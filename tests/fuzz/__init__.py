"""Fuzzing: texts that no one would think of, against the promises that hold for every text."""
