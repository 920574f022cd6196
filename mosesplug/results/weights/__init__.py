"""Weights from files and runs: compare, combine and convert them."""
