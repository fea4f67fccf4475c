"""Questions with gold answers, from files, data sets and the gym."""
