"""Result files of other tools, read as figures: one extractor for each format, and one that a table describes."""
