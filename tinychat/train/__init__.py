"""Recipe → batches → steps → events."""
