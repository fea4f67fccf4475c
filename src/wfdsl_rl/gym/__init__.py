"""The gym: simulated workers and generated questions whose answers are true."""
