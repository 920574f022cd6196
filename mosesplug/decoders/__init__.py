"""Decoders: Moses and its like, run once or as servers, and a small bundled one."""
