"""A small phrase-based beam decoder, for the demo, for tests and for teaching."""
