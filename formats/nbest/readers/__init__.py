"""The formats of n-best lists, one module each with the object ``LIST_FORMAT``."""
