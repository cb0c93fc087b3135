"""The state that a front end holds: the open model, the conversation, comparisons and training runs."""
