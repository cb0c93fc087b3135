"""tinychat: train a tiny language model on your own text, talk to it, and see why it says what it says."""

__version__ = "0.1.0"
