"""Adapters to training engines, each with the real package in an environment of its own: `make engines`."""
