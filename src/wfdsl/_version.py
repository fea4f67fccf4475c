"""The version of this package (SemVer)."""

__version__ = "0.1.0"
