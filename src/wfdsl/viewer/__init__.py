"""Pages in a browser: the list of runs, one run in three views, comparisons, steps asked again, and a playground."""
