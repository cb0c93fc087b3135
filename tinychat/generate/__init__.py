"""Prompts and settings → a stream of records, by way of an engine."""
