"""Evaluation: policies over tasks, a result for each, and what the results say together."""
