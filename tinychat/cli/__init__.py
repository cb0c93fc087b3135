"""The command line, built with click."""
