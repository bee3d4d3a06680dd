"""Judging, pure: no I/O, no clock, seeds passed in. Imports ``core`` and ``receipt``."""
