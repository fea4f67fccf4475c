"""The command line: argument parsing, exit codes, what is printed where. No logic."""
