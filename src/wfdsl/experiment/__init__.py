"""What is run and how, in one TOML file: [pool], [conductor], [budget], [run] and [train]."""
