"""The commands: the only place that prints, exits, or knows a terminal."""
