"""One epoch of learning while decoding."""
