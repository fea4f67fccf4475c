"""Benchmarks: each prints a table of ratios within one run, beside the targets."""
