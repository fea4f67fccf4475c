"""`wfdsl-train`, and `wfdsl serve --score`."""
