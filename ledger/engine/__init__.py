"""Programs of their own that start a real engine. Imports nothing of ``ledger``, and nothing imports it."""
