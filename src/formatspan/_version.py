"""The version, read by the build and stored with every run."""

__version__ = "0.1.0"
