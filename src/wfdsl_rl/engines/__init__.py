"""The reward for training engines of others: a reward server, its client, and adapters."""
