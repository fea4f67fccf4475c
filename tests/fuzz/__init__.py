"""Fuzzing: texts that nobody would think of, against the promises that hold for every text."""
