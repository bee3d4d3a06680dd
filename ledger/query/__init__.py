"""The DuckDB index, its views and the query language. Imports ``analysis``, ``store`` and what is below."""
