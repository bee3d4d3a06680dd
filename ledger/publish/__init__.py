"""Pages that rest on receipts: figures bound to questions, checked, filled in, corrected."""
