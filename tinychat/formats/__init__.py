"""Import and export of other tools' model formats."""
