"""Decoders: Moses and its like as processes, and the small bundled one."""
