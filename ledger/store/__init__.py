"""Keeping: objects, blobs, git, verification. Imports ``core`` and ``receipt``."""
