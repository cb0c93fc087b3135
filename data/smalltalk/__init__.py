"""Conversations of one to eight turns between a person and tinychat."""
