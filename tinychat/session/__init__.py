"""The state of a front end: the open model, the conversation, comparisons and training runs."""
