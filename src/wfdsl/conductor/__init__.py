"""The Conductor at work: a question in, a workflow written and run, an answer out."""
