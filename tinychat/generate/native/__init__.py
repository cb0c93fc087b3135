"""An engine in C, for a CPU: no torch, no Python inside."""
