"""The n-best lists of a decoder: follow, check, rewrite and compress them."""
