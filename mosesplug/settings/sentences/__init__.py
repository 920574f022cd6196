"""Settings with a value for each source sentence, from files or sequences."""
