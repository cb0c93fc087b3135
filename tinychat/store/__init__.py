"""Models and training runs as folders."""
