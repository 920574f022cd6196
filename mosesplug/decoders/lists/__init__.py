"""The n-best lists that a decoder writes: follow, check, rewrite and compress them."""
