"""The native engine: decoding in C on a CPU, without torch."""
