"""The algorithms there are, family by family."""
