"""What a store tells about a run: numbers and texts for people, from reading alone."""
