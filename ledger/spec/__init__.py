"""What is asked: the declaration (spec and site), its reading, interpolation, and the plan. Imports ``core`` alone."""
