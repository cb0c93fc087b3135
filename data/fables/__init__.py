"""A few of the tales, as a text to train on within a minute."""
