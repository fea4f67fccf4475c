"""Tasks: questions with gold answers, from files, data sets and task sources."""
