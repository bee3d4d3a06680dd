"""What happened: the record of one thing, its bytes, its schema. Imports ``core`` and ``spec``'s words only through ``core``."""
