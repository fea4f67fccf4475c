"""Tests of diagnostics: the table of codes, and how they are drawn."""
