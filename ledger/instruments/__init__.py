"""Measuring: load plans, what executes them over HTTP, and their reduction to figures. Imports ``core`` and ``receipt``."""
