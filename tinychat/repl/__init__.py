"""The REPL: keys in, records out."""
