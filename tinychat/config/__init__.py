"""Everything that a person can set: options, their tables, and where each value came from."""
