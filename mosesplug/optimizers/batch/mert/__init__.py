"""Minimum error rate training (Och 2003): climbs by exact line search."""
