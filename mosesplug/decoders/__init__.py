"""Decoders: Moses and its like, run once or kept as servers, and the small bundled one."""
