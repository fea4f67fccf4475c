"""The simulated world: generated questions with true answers, and workers whose behaviour is a published model."""
