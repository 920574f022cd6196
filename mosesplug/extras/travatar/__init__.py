"""Travatar's ``batch-tune`` and ``rescorer``."""
