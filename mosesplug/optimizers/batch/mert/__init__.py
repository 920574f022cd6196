"""Minimum error rate training (Och 2003) by exact line search."""
