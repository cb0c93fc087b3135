"""Options: their declarations, the settings, the interface options, and the precedence of their sources."""
