"""Measure a model: perplexity, suites of checks, speed, and the Shannon game."""
