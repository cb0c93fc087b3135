"""Draw results on a terminal, and write them as files."""
