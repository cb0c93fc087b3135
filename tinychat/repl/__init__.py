"""The REPL: the prompt, its keys, and the views of answers, comparisons and training runs."""
