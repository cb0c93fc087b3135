"""Files → documents → token ids → text."""
