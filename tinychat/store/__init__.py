"""A model, a run ↔ a folder; and other tools' formats."""
