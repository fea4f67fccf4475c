"""What only the tiny model of random weights needs to be trained: an extension of `wfdsl_rl.training`."""
