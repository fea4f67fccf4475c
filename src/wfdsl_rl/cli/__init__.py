"""The commands wfdsl-data, wfdsl-eval and wfdsl-train."""
