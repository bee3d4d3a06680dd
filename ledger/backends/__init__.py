"""Reaching and starting: how a node is reached and what runs there. Imports ``core`` and the records of ``spec``."""
