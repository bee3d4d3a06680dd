"""Sessions: attempts, boots, trials, gates, decisions, one after the other. Imports all rooms below."""
